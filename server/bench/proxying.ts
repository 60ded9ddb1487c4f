/**
 * Measures the cost of a proxied request against three baselines with the same destination: a direct request, a proxy that only
 * forwards, and a proxy that only writes down each request before forwarding it. Decisions 0045 and 0046.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { LARGE_BYTES, LARGE_PATH } from './bare-servers.ts'
import { load, postBytes, type LoadResult } from './load.ts'
import { CARD, SERVER_CORE } from './rows.ts'
import { startSubject, type BenchSubject } from './subjects.ts'
import { median } from './table.ts'

const FIRST_WARMUP_MS = 5000
const TIMES = { warmupMs: 500, measureMs: 2000 }

/** Connections of the rows that measure time, and of those that measure processor time. */
const ALONE = 1
const CONCURRENT = 32

export interface Proxied {
  readonly name: string
  /** Time of one request at a time, microseconds. */
  readonly p50Us: number
  /** Processor time of the process in question, a request, among CONCURRENT. */
  readonly cpuUs: number
  /** Time of LARGE_BYTES of an answer, milliseconds. */
  readonly largeMs: number
}

export interface Proxying {
  /** To the destination that all others forward to; it shares its core with the load. */
  readonly direct: Proxied
  /** To one like it that has the server's core, and that to itself. */
  readonly apart: Proxied
  readonly bare: Proxied
  readonly recording: Proxied
  readonly vault: Proxied
  /** Growth of peak resident memory during downloads of LARGE_BYTES, in bytes; the maximum over all rounds. */
  readonly growth: number
}

/**
 * Measures `rounds` times the ways to one destination, and one like it on the server's core.
 *
 * The generator of load and the destination share a core; what is measured has the other for itself. Whether the
 * generator sleeps between answers makes no difference to the vault's.
 */
export async function measureProxying(rounds: number): Promise<Proxying> {
  const others = SERVER_CORE + 1
  const destination = await startSubject('destination', others)
  const echo = await startSubject('destination', SERVER_CORE)
  const bare = await startSubject('bare-proxy', SERVER_CORE, { number: destination.port })
  const recording = await startSubject('recording-proxy', SERVER_CORE, { number: destination.port })
  const vault = await startSubject('proxying', SERVER_CORE)
  const ways = [
    way('direct', destination, '', {}),
    way("echo, server's core", echo, '', {}),
    way('bare proxy', bare, '', {}),
    way('recording proxy', recording, '', {}),
    way('vault', vault, '/proxy', {
      'bt-api-key': vault.key,
      'bt-proxy-url': `http://127.0.0.1:${destination.port}`,
    }),
  ]
  const body = `{"card":{"number":"{{ ${await tokenIn(vault)} | json: '$.number' }}","month":12},"amount":1234}`
  let growth = 0
  try {
    for (const it of ways) await it.call(body, CONCURRENT, FIRST_WARMUP_MS)
    for (let round = 0; round < rounds; round++) {
      for (const it of ways) {
        it.alone.push((await it.call(body, ALONE)).p50Us)
        const concurrent = await it.call(body, CONCURRENT)
        it.cpu.push(concurrent.cpuUs / concurrent.requests)
        growth = Math.max(growth, await growthDuring(vault, () => it.download()))
      }
    }
  } finally {
    for (const it of [vault, recording, bare, echo, destination]) await it.stop()
  }
  const [direct, apart, through, recorded, proxied] = ways.map(({ name, alone, cpu, large }) => ({
    name,
    p50Us: median(alone),
    cpuUs: median(cpu),
    largeMs: median(large),
  }))
  return {
    direct: direct!,
    apart: apart!,
    bare: through!,
    recording: recorded!,
    vault: proxied!,
    growth,
  }
}

/** One of the ways, and its measurements so far. */
function way(name: string, subject: BenchSubject, prefix: string, headers: Record<string, string>) {
  const { port } = subject
  const large: number[] = []
  return {
    name,
    large,
    alone: [] as number[],
    cpu: [] as number[],
    call: async (body: string, connections: number, warmupMs = TIMES.warmupMs) => {
      const bytes = postBytes(`${prefix}/echo`, body, headers)
      const options = { ...TIMES, port, connections, warmupMs, status: 200 } as const
      const result: LoadResult = await load({
        ...options,
        request: () => bytes,
        cpuUs: subject.cpuUs,
      })
      if (result.failures > 0) throw new Error(`${name}: ${result.failures} requests failed`)
      return result
    },
    download: async () => {
      const begun = performance.now()
      await receive(port, `${prefix}${LARGE_PATH}`, headers)
      large.push(performance.now() - begun)
    },
  }
}

function receive(port: number, path: string, headers: Record<string, string>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const asked = get({ host: '127.0.0.1', port, path, headers }, (answer) => {
    let bytes = 0
    answer.on('data', (chunk: Buffer) => (bytes += chunk.length))
    answer.on('end', () => {
      if (answer.statusCode === 200 && bytes === LARGE_BYTES) resolve()
      else reject(new Error(`${path} was answered ${answer.statusCode} with ${bytes} bytes`))
    })
  })
  asked.on('error', reject)
  return promise
}

/** Returns by how many bytes the peak of the subject's resident memory passes what it has now. */
async function growthDuring({ pid }: BenchSubject, work: () => Promise<void>): Promise<number> {
  // Lets the peak begin at what is resident now. Source: proc(5), clear_refs.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = memoryOf(pid, 'VmRSS')
  await work()
  return memoryOf(pid, 'VmHWM') - before
}

function memoryOf(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) * 1024
}

async function tokenIn({ port, key }: BenchSubject): Promise<string> {
  const reply = await fetch(`http://127.0.0.1:${port}/tokens`, {
    method: 'POST',
    headers: { 'BT-API-KEY': key, 'Content-Type': 'application/json' },
    body: CARD,
  })
  return ((await reply.json()) as { id: string }).id
}

import { load, postBytes } from './load.ts'
import { SERVER_CORE } from './rows.ts'
import { startSubject, type BenchSubject } from './subjects.ts'
import { median } from './table.ts'

const TIMES = { warmupMs: 300, measureMs: 1500 }
const FIRST_WARMUP_MS = 3000
const CONNECTIONS = 16
const PAGE_SIZE = 20
const FAR_PAGE = 1000

/** Processor time of one request of each kind, in microseconds; medians. */
export interface Searching {
  readonly pointRead: number
  readonly dataTerm: number
  readonly fingerprintTerm: number
  readonly firstPage: number
  readonly farPage: number
  /** Which one that was: the thousandth, or the last there is. */
  readonly far: number
}

/** Measures the cost of finding tokens among `tokens`, against reading one by id. */
export async function measureSearching(tokens: number, rounds: number): Promise<Searching> {
  const subject = await startSubject('filled', SERVER_CORE, { number: tokens })
  const far = Math.min(FAR_PAGE, Math.ceil(tokens / PAGE_SIZE))
  try {
    const requests = requestsTo(subject, far)
    const names = Object.keys(requests) as (keyof typeof requests)[]
    const measured: Record<string, number[]> = {}
    for (const name of names) await measureOnce(subject, requests[name], FIRST_WARMUP_MS)
    for (let round = 0; round < rounds; round++) {
      for (const name of names) {
        const us = await measureOnce(subject, requests[name], TIMES.warmupMs)
        ;(measured[name] ??= []).push(us)
      }
    }
    const us = (name: keyof typeof requests): number => median(measured[name]!)
    return {
      pointRead: us('pointRead'),
      dataTerm: us('dataTerm'),
      fingerprintTerm: us('fingerprintTerm'),
      firstPage: us('firstPage'),
      farPage: us('farPage'),
      far,
    }
  } finally {
    await subject.stop()
  }
}

function requestsTo(subject: BenchSubject, far: number) {
  const { ids, values, fingerprints } = subject.samples!
  const search = (query: string): Buffer =>
    postBytes('/tokens/search', JSON.stringify({ query }), { 'bt-api-key': subject.key })
  const get = (path: string): Buffer =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nbt-api-key: ${subject.key}\r\n\r\n`)
  return {
    pointRead: oneAfterTheOther(ids.map((it) => get(`/tokens/${it}`))),
    dataTerm: oneAfterTheOther(values.map((it) => search(`data:"${it}"`))),
    fingerprintTerm: oneAfterTheOther(fingerprints.map((it) => search(`fingerprint:${it}`))),
    firstPage: oneAfterTheOther([get(`/tokens?size=${PAGE_SIZE}`)]),
    farPage: oneAfterTheOther([get(`/tokens?size=${PAGE_SIZE}&page=${far}`)]),
  }
}

/** Steps through the requests by a stride that leaves none out and keeps neighbours apart. */
function oneAfterTheOther(requests: readonly Buffer[]): () => Buffer {
  let at = 0
  return () => requests[(at += 619) % requests.length]!
}

async function measureOnce(
  subject: BenchSubject,
  request: () => Buffer,
  warmupMs: number,
): Promise<number> {
  const result = await load({
    port: subject.port,
    connections: CONNECTIONS,
    warmupMs,
    measureMs: TIMES.measureMs,
    request,
    status: 200,
    cpuUs: subject.cpuUs,
  })
  if (result.failures > 0) throw new Error(`filled: ${result.failures} requests failed`)
  return result.cpuUs / result.requests
}

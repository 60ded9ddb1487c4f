import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { load } from './load.ts'
import { CARD, tokenizeBytes } from './rows.ts'
import { startSubject, type BenchSubject } from './subjects.ts'
import { median } from './table.ts'

/** Callers of code that does harm: so many of each kind, and for how long they go on. */
const CALLERS_OF_EACH = 200
const STORM_MS = 30_000
const HARMFUL = ['loop', 'bomb', 'flood'] as const
// All processes share two cores: none of them may spin.
const TIMES = { warmupMs: 1000, measureMs: 4000 }

export interface Storm {
  /** p99 of one tenant's single cards, alone and while another tenant's code rages; medians, microseconds. */
  readonly quietP99Us: number
  readonly besideP99Us: number
  readonly failures: number
  /** How the invocations were answered: how many, by status. */
  readonly answers: Readonly<Record<string, number>>
}

/**
 * Measures how one tenant is affected by another that runs endless loops, memory bombs and output floods concurrently.
 *
 * Each is invoked again when it ends or, when refused, after up to twice the delay the refusal asked for: the load must come
 * from the code, not from its callers, who share a process with the measuring side.
 */
export async function measureStorm(rounds: number): Promise<Storm> {
  const subject = await startSubject('reacting', null)
  const quiet: number[] = []
  const beside: number[] = []
  const answers: Record<string, number> = {}
  let failures = 0
  try {
    const card = tokenizeBytes({ ...subject, key: subject.reacting!.otherKey }, CARD)
    const options = { ...TIMES, port: subject.port, status: 200, sleeps: true } as const
    const cards = async (into: number[]): Promise<void> => {
      const result = await load({ ...options, connections: CARD_CALLS, request: () => card })
      failures += result.failures
      into.push(result.p99Us)
    }
    await cards([])
    for (let round = 0; round < rounds; round++) await cards(quiet)
    const state = { raging: true }
    const storm = rage(subject, answers).finally(() => (state.raging = false))
    await sleep(TIMES.warmupMs)
    while (state.raging) await cards(beside)
    await storm
  } finally {
    await subject.stop()
  }
  return { quietP99Us: median(quiet), besideP99Us: median(beside), failures, answers }
}

const CARD_CALLS = 64

/** Counts answers by status, in `answers`. */
async function rage(subject: BenchSubject, answers: Record<string, number>): Promise<void> {
  const { reactors } = subject.reacting!
  const callers = HARMFUL.flatMap((kind) => Array.from({ length: CALLERS_OF_EACH }, () => kind))
  const agent = new Agent({ keepAlive: true })
  const end = performance.now() + STORM_MS
  await Promise.all(
    callers.map(async (kind) => {
      while (performance.now() < end) {
        const { status, retryAfterMs } = await invoke(subject, reactors[kind], agent)
        answers[status] = (answers[status] ?? 0) + 1
        if (retryAfterMs > 0) await sleep(retryAfterMs * (1 + Math.random()))
      }
    }),
  )
  agent.destroy()
}

async function invoke(
  { port, key }: BenchSubject,
  reactor: string,
  agent: Agent,
): Promise<{ status: number; retryAfterMs: number }> {
  const call = request({
    agent,
    host: '127.0.0.1',
    port,
    path: `/reactors/${reactor}/react`,
    method: 'POST',
    headers: { 'bt-api-key': key, 'content-type': 'application/json' },
  })
  call.end('{"args":{}}')
  const [reply] = (await once(call, 'response')) as [IncomingMessage]
  await once(reply.resume(), 'end')
  const retryAfterMs = Number(reply.headers['retry-after'] ?? 0) * 1000
  return { status: reply.statusCode!, retryAfterMs }
}

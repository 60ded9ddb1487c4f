import { load } from './load.ts'
import { strings, tokenizeBytes, CARD } from './rows.ts'
import { startSubject } from './subjects.ts'
import { median } from './table.ts'

const BULK_TOKENS = 10_000
// Both callers and the server's two threads share two cores: none of them may spin.
const TIMES = { warmupMs: 1000, measureMs: 4000 }

export interface Fairness {
  /** p99 of one caller's single cards, alone and beside the bulk caller; medians, microseconds. */
  readonly quietP99Us: number
  readonly besideP99Us: number
  /** Payloads of ten thousand that the bulk caller got done meanwhile, a second. */
  readonly bulkPerSecond: number
}

/** Measures how a caller that sends payloads of ten thousand strings back to back affects another caller. */
export async function measureFairness(rounds: number): Promise<Fairness> {
  const subject = await startSubject('durable', null)
  const quiet: number[] = []
  const beside: number[] = []
  const bulk: number[] = []
  try {
    const card = tokenizeBytes(subject, CARD)
    const payload = tokenizeBytes(subject, JSON.stringify(strings(BULK_TOKENS)))
    const options = { ...TIMES, port: subject.port, status: 200, sleeps: true } as const
    const cards = () => load({ ...options, connections: CARD_CALLS, request: () => card })
    for (let round = 0; round < rounds; round++) {
      quiet.push((await cards()).p99Us)
      const [single, bulky] = await Promise.all([
        cards(),
        load({ ...options, connections: 1, request: () => payload }),
      ])
      beside.push(single.p99Us)
      bulk.push(bulky.requests / bulky.seconds)
    }
  } finally {
    await subject.stop()
  }
  return {
    quietP99Us: median(quiet),
    besideP99Us: median(beside),
    bulkPerSecond: median(bulk),
  }
}

/** Single cards in flight, as in the other rows of cards. */
const CARD_CALLS = 64

import { setTimeout } from 'node:timers/promises'
import { LatencyHistogram, load } from './load.ts'
import { CARD, strings, tokenizeBytes } from './rows.ts'
import { startSubject, type BenchSubject } from './subjects.ts'
import { median } from './table.ts'

/** A transaction is filled by requests of the size that is allowed without asking for more. */
const REQUEST_TOKENS = 10_000
const TRANSACTION_TOKENS = 100_000

/** Commits of nothing that a round measures, and of so much. */
const EMPTY_COMMITS = 200
const LARGE_COMMITS = 3

/** Others' single cards in flight. None may spin: they and the server's two threads share two cores. */
const CARD_CALLS = 64
const TIMES = { warmupMs: 1000, measureMs: 4000 }

export interface Committing {
  /** p99 of an empty commit and of one that shows a hundred thousand tokens; microseconds. */
  readonly emptyP99Us: number
  readonly largeP99Us: number
  /** p99 of others' single cards, alone and while large commits are made; medians, microseconds. */
  readonly quietP99Us: number
  readonly besideP99Us: number
}

/** Measures the cost of committing a transaction with a hundred thousand tokens, and its effect on other requests. */
export async function measureCommits(rounds: number): Promise<Committing> {
  const subject = await startSubject('durable', null)
  const [empty, large] = [new LatencyHistogram(), new LatencyHistogram()]
  const [quiet, beside]: [number[], number[]] = [[], []]
  const card = tokenizeBytes(subject, CARD)
  const options = { ...TIMES, port: subject.port, status: 200, sleeps: true } as const
  const cards = () => load({ ...options, connections: CARD_CALLS, request: () => card })
  try {
    for (let round = 0; round < rounds; round++) {
      for (let n = 0; n < EMPTY_COMMITS; n++) {
        empty.add(await commit(subject, await open(subject)))
      }
      const filled: string[] = []
      for (let n = 0; n < LARGE_COMMITS; n++) filled.push(await openFilled(subject))
      quiet.push((await cards()).p99Us)
      const [others] = await Promise.all([cards(), commitAll(filled)])
      beside.push(others.p99Us)
    }
  } finally {
    await subject.stop()
  }
  return {
    emptyP99Us: empty.quantile(0.99),
    largeP99Us: large.quantile(0.99),
    quietP99Us: median(quiet),
    besideP99Us: median(beside),
  }

  async function commitAll(ids: readonly string[]): Promise<void> {
    await setTimeout(TIMES.warmupMs)
    for (const id of ids) {
      await setTimeout(TIMES.measureMs / (ids.length + 1))
      large.add(await commit(subject, id))
    }
  }
}

async function openFilled(subject: BenchSubject): Promise<string> {
  const id = await open(subject)
  const body = JSON.stringify(strings(REQUEST_TOKENS))
  for (let made = 0; made < TRANSACTION_TOKENS; made += REQUEST_TOKENS) {
    await call(subject, '/tokenize', { body, transaction: id })
  }
  return id
}

async function open(subject: BenchSubject): Promise<string> {
  const { text } = await call(subject, '/transactions')
  return (JSON.parse(text) as { id: string }).id
}

/** Returns how long it took, in microseconds. */
async function commit(subject: BenchSubject, id: string): Promise<number> {
  const begun = performance.now()
  await call(subject, `/transactions/${id}/commit`)
  return (performance.now() - begun) * 1000
}

async function call(
  { port, key }: BenchSubject,
  path: string,
  { body, transaction }: { readonly body?: string; readonly transaction?: string } = {},
): Promise<{ readonly text: string }> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'BT-API-KEY': key,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(transaction !== undefined && { 'BT-TRANSACTION-ID': transaction }),
    },
    ...(body !== undefined && { body }),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`POST ${path} was answered ${reply.status}: ${text}`)
  return { text }
}

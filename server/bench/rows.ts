import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { load, postBytes, type LoadResult } from './load.ts'
import { canPin, startSubject, type BenchSubject, type SubjectKind } from './subjects.ts'
import { median } from './table.ts'

/** The server has the first core, the load generator the second. */
export const SERVER_CORE = 0

/** Before the first round, at least: the compiler is at work for some ten thousand requests. */
const FIRST_WARMUP_MS = 8000
const FIRST_WARMUP_REQUESTS = 10_000
const WARMUP_MS = 500
const MEASURE_MS = 2000

/** The card of interface.md's first example, without the security code that is sealed apart. */
export const CARD = JSON.stringify({
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 },
})

export const CARD_WITH_CVC = JSON.stringify({
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
})

export const ARRAY_OF_100 = JSON.stringify(strings(100))

export function strings(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `value number ${index}`)
}

/** One thing to measure, in all rounds. */
export interface BenchRow {
  readonly name: string
  readonly kind: SubjectKind
  readonly body: string
  readonly connections: number
}

/** Medians over the rounds. */
export interface Measured {
  readonly name: string
  readonly perSecond: number
  readonly cpuUs: number
  readonly p50Us: number
  readonly p99Us: number
}

/**
 * Measures all rows, one after the other in each round, and runs the other comparisons `beside` them, so a slow
 * minute affects all of them.
 */
export async function measure(
  rows: readonly BenchRow[],
  rounds: number,
  beside: () => void = () => {},
): Promise<Map<string, Measured>> {
  const subjects = new Map<SubjectKind, BenchSubject>()
  const results = new Map<string, LoadResult[]>()
  try {
    for (const { kind } of rows) {
      if (!subjects.has(kind)) subjects.set(kind, await startSubject(kind, SERVER_CORE))
    }
    for (const row of rows) await warmUp(subjects.get(row.kind)!, row)
    for (let round = 0; round < rounds; round++) {
      for (const row of rows) {
        const result = await measureOnce(subjects.get(row.kind)!, row, WARMUP_MS)
        results.set(row.name, [...(results.get(row.name) ?? []), result])
      }
      beside()
    }
  } finally {
    for (const subject of subjects.values()) await subject.stop()
  }
  return new Map([...results].map(([name, all]) => [name, medians(name, all)]))
}

async function warmUp(subject: BenchSubject, row: BenchRow): Promise<void> {
  const begun = performance.now()
  let requests = 0
  while (performance.now() - begun < FIRST_WARMUP_MS || requests < FIRST_WARMUP_REQUESTS) {
    requests += (await measureOnce(subject, row, 0)).requests
  }
}

async function measureOnce(
  subject: BenchSubject,
  { body, connections }: BenchRow,
  warmupMs: number,
): Promise<LoadResult> {
  const request = tokenizeBytes(subject, body)
  const result = await load({
    port: subject.port,
    connections,
    warmupMs,
    measureMs: MEASURE_MS,
    request: () => request,
    status: 200,
    cpuUs: subject.cpuUs,
  })
  if (result.failures > 0) throw new Error(`${subject.kind}: ${result.failures} requests failed`)
  return result
}

/** An echo gets the same bytes, including a key it does not check. */
export function tokenizeBytes({ key }: BenchSubject, body: string): Buffer {
  return postBytes('/tokenize', body, { 'bt-api-key': key === '' ? KEY_OF_NOBODY : key })
}

/** As long as a key is. */
const KEY_OF_NOBODY = `key_local_pvt_${'1'.repeat(38)}`

function medians(name: string, all: readonly LoadResult[]): Measured {
  return {
    name,
    perSecond: median(all.map((it) => it.requests / it.seconds)),
    cpuUs: median(all.map((it) => it.cpuUs / it.requests)),
    p50Us: median(all.map((it) => it.p50Us)),
    p99Us: median(all.map((it) => it.p99Us)),
  }
}

/** Rows a second that SQLite inserts with no service around it. */
export function measureRawInsert(): number {
  const program = fileURLToPath(new URL('./raw-insert.ts', import.meta.url))
  const command = [process.execPath, program, String(MEASURE_MS)]
  const [file, ...args] = canPin() ? ['taskset', '-c', String(SERVER_CORE), ...command] : command
  return Number(execFileSync(file!, args, { encoding: 'utf8' }))
}

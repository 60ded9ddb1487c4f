/**
 * Checks a vault's state against the responses its callers got.
 */
import type { Json, JsonObject } from '../src/base/json.ts'
import { digestOf, type Entry, type MadeToken } from './ledger.ts'
import type { VaultClient } from './vault-client.ts'
import { markOf } from './workload.ts'

/** Faults the verifier distinguishes. */
export const FAULTS = {
  lost: 'acknowledged, and not there as it was sent',
  ghost: 'there, though its caller was refused or nobody asked',
  half: 'a part of what was asked in one request',
  double: 'made twice, or answered in two ways',
  stray: 'an outcome that the operation cannot have, or a server that died by itself',
  flaw: 'something amiss in the database',
} as const

export type Fault = keyof typeof FAULTS

/** Counts the faults found, and describes the first few of each. */
export class CrashVerdict {
  readonly counts = Object.fromEntries(Object.keys(FAULTS).map((it) => [it, 0])) as Record<
    Fault,
    number
  >
  readonly stories: string[] = []
  readonly #seen = new Set<string>()

  /** Counts each story once, however often it is found. */
  add(fault: Fault, story: string): void {
    const told = `${fault}: ${story}`
    if (this.#seen.has(told)) return
    this.#seen.add(told)
    if (++this.counts[fault] <= STORIES_MAX) this.stories.push(told)
  }

  get innocent(): boolean {
    return this.#seen.size === 0
  }
}

/** Lists the tokens made at `since` or later that readers may see. */
export interface VisibleTokens {
  readonly visibleTokens: (since: number) => readonly string[] | Promise<readonly string[]>
}

const STORIES_MAX = 10
const READERS = 16

/** Reads every token acknowledged to `entries`, and compares it with the data sent. */
export async function verifyAcked(
  client: Pick<VaultClient, 'read'>,
  entries: Iterable<Entry>,
  verdict: CrashVerdict,
): Promise<void> {
  const expected: { token: MadeToken; digest: string; told: string }[] = []
  for (const { sent, outcome, contradictions, failures } of entries) {
    const name = `operation ${sent.op} (${sent.kind})`
    for (const it of contradictions) verdict.add('double', `${name} was also ${it.outcome}`)
    for (const it of failures) verdict.add('stray', `${name} was answered with ${it}`)
    if (outcome.outcome === 'refused' && (sent.expect === 'tokens' || outcome.status === 401)) {
      verdict.add('stray', `${name} was refused with ${outcome.status}`)
    }
    if (outcome.outcome !== 'acked') continue
    if (sent.expect === 'refusal') verdict.add('stray', `${name} should have been refused`)
    if (outcome.tokens.length !== sent.digests.length) {
      verdict.add('lost', `${name} was answered with ${outcome.tokens.length} tokens`)
    }
    for (const [n, token] of outcome.tokens.entries()) {
      expected.push({ token, digest: sent.digests[n]!, told: `${name}, token ${n}` })
    }
  }
  await eachOf(expected, async ({ token, digest, told }) => {
    const found = await client.read(token.id)
    if (found === null) return verdict.add('lost', `${told} is not there`)
    if (digestOf(found['data']!) !== digest) verdict.add('lost', `${told} is not what was sent`)
    if (found['fingerprint'] !== token.fingerprint) {
      verdict.add('lost', `${told} has another fingerprint`)
    }
  })
}

/**
 * Checks the tokens made at `since` or later that no acknowledgement named; returns how many of them are legitimate.
 *
 * They may exist only if the outcome of their operation is unknown, and then all of that operation's must.
 */
export async function verifyUntold(
  client: Pick<VaultClient, 'read'>,
  database: VisibleTokens,
  entries: ReadonlyMap<number, Entry>,
  since: number,
  verdict: CrashVerdict,
): Promise<number> {
  const told = new Set<string>()
  for (const { outcome } of entries.values()) {
    if (outcome.outcome === 'acked') for (const { id } of outcome.tokens) told.add(id)
  }
  const visible = await database.visibleTokens(since)
  const untold = visible.filter((id) => !told.has(id))
  const byOperation = new Map<number, JsonObject[]>()
  await eachOf(untold, async (id) => {
    const token = await client.read(id)
    if (token === null) return verdict.add('flaw', `${id} is in the database and cannot be read`)
    const mark = markOf(token['data'])
    if (mark === null) return verdict.add('ghost', `${id} is not of our making`)
    byOperation.set(mark.op, [...(byOperation.get(mark.op) ?? []), token])
  })
  const judged = [...byOperation].map(([op, tokens]) => {
    const data = tokens.map((it) => it['data']!)
    return { op, count: tokens.length, fault: faultOf(entries.get(op), data) }
  })
  // An operation of several requests may have begun before `since`: then check everything.
  if (since > 0 && judged.some(({ fault }) => fault === 'half')) {
    return await verifyUntold(client, database, entries, 0, verdict)
  }
  let rightly = 0
  for (const { op, count, fault } of judged) {
    const kind = entries.get(op)?.sent.kind ?? 'never sent'
    if (fault === null) rightly += count
    else verdict.add(fault, `${count} tokens of operation ${op} (${kind})`)
  }
  return rightly
}

/** Classifies tokens that exist though the operation's caller never got their ids; null when that is legitimate. */
function faultOf(entry: Entry | undefined, data: readonly Json[]): Fault | null {
  if (entry === undefined || entry.outcome.outcome === 'refused') return 'ghost'
  if (entry.outcome.outcome === 'acked') return 'double'
  if (entry.sent.expect === 'refusal') return 'ghost'
  const { digests } = entry.sent
  const found = data.map(digestOf).sort()
  if (found.length > digests.length) return 'double'
  const whole = found.length === digests.length && found.join() === digests.toSorted().join()
  return whole ? null : 'half'
}

async function eachOf<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values()
  const reader = async (): Promise<void> => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: READERS }, reader))
}

/**
 * The client's knowledge on file: every operation before it is sent, every outcome when it arrives.
 *
 * Lines of JSON, each written through to the kernel before the client goes on, so the file is accurate
 * whichever process dies. It is the only evidence a vault is judged by.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { hash } from 'node:crypto'
import type { Json } from '../src/base/json.ts'

/** An operation that may be or may have been sent. */
export interface SentOperation {
  /** Its number, from 1. */
  readonly op: number
  readonly kind: string
  /** Required result: tokens, none (it is refused, or its caller takes it back), or either. */
  readonly expect: 'tokens' | 'refusal' | 'either'
  readonly idempotencyKey: string | null
  /** Of the plaintext of each token, in order; digestOf() each. */
  readonly digests: readonly string[]
}

export interface MadeToken {
  readonly id: string
  readonly fingerprint?: string
}

export type OperationOutcome =
  | { readonly outcome: 'acked'; readonly tokens: readonly MadeToken[] }
  | { readonly outcome: 'refused'; readonly status: number }
  /** No answer, half an answer, or a 5xx. */
  | { readonly outcome: 'unknown'; readonly why: string; readonly status?: number }

export interface Entry {
  readonly sent: SentOperation
  /** Unknown until there is an answer: the client may have died before it could write one. */
  outcome: OperationOutcome
  /** Whether it was ever sent in vain. */
  wasUnknown: boolean
  /** Later answers that contradict the first: there should be none. */
  readonly contradictions: OperationOutcome[]
  /** Answers of 500 and above: a server that is killed has no reason to give one. */
  readonly failures: number[]
}

export class Ledger {
  readonly #fd: number
  readonly entries = new Map<number, Entry>()

  /** Appends to `file`. */
  constructor(file: string) {
    this.#fd = openSync(file, 'a', 0o600)
  }

  /** To be called before the operation is sent for the first time. */
  send(sent: SentOperation): Entry {
    this.#append(sent)
    return begin(this.entries, sent)
  }

  /** To be called with every answer, and with every lack of one. */
  settle(op: number, outcome: OperationOutcome): void {
    this.#append({ op, ...outcome })
    conclude(this.entries.get(op)!, outcome)
  }

  close(): void {
    closeSync(this.#fd)
  }

  #append(line: SentOperation | ({ op: number } & OperationOutcome)): void {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`)
  }
}

/** Reads a ledger back; the end may be missing. */
export function readLedger(file: string): Map<number, Entry> {
  const entries = new Map<number, Entry>()
  const lines = readFileSync(file, 'utf8').split('\n')
  for (const text of lines.slice(0, -1)) {
    const line = JSON.parse(text) as SentOperation | ({ op: number } & OperationOutcome)
    if ('outcome' in line) conclude(entries.get(line.op)!, line)
    else begin(entries, line)
  }
  return entries
}

/** 22 characters, equal for equal data whatever the order of its members. */
export function digestOf(data: Json): string {
  const sorted = JSON.stringify(data, (_name, value: Json) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
  return hash('sha256', sorted, 'base64url').slice(0, 22)
}

function begin(entries: Map<number, Entry>, sent: SentOperation): Entry {
  const outcome: OperationOutcome = { outcome: 'unknown', why: 'no outcome was written' }
  const entry: Entry = { sent, outcome, wasUnknown: false, contradictions: [], failures: [] }
  entries.set(sent.op, entry)
  return entry
}

function conclude(entry: Entry, outcome: OperationOutcome): void {
  if (outcome.outcome === 'unknown') {
    entry.wasUnknown = true
    if (outcome.status !== undefined) entry.failures.push(outcome.status)
  } else if (entry.outcome.outcome === 'unknown') {
    entry.outcome = outcome
  } else if (!agree(entry.outcome, outcome)) {
    entry.contradictions.push(outcome)
  }
}

function agree(one: OperationOutcome, other: OperationOutcome): boolean {
  if (one.outcome === 'refused' || other.outcome === 'refused') return one.outcome === other.outcome
  return JSON.stringify(idsOf(one)) === JSON.stringify(idsOf(other))
}

function idsOf(outcome: OperationOutcome): string[] {
  return outcome.outcome === 'acked' ? outcome.tokens.map((it) => it.id) : []
}

/** Requests to send while the connection is cut: each kind makes a transaction of another form. */
import type { Json } from '../../src/base/json.ts'

export interface CutKind {
  readonly name: string
  /** Of all cuts. */
  readonly share: number
  /** How many tokens it makes. */
  readonly tokens: number
  /** Whether they are made in a transaction, and the cut is made when that is committed. */
  readonly transacted: boolean
  /** Returns the payload to tokenize for cut `n`. */
  readonly payload: (n: number) => Json
}

export const KINDS: readonly CutKind[] = [
  kind('together', 0.5, 3, (n, leaf) => ({ data: `${n}.${leaf}` })),
  // An id that could be another token's internal id has to be asked for, so the commit has a savepoint.
  kind('apart', 0.2, 3, (n, leaf) => ({ data: `${n}.${leaf}`, id: uuidOf(n, leaf) })),
  // More than fits into a batch with others.
  kind('long', 0.1, 300, (n, leaf) => ({ data: `${n}.${leaf}` })),
  { ...kind('transacted', 0.2, 3, (n, leaf) => ({ data: `${n}.${leaf}` })), transacted: true },
]

/** By which a token of cut `n` is known in the database. */
export function labelOf(n: number): string {
  return `cut ${n}.`
}

function kind(
  name: string,
  share: number,
  tokens: number,
  leaf: (n: number, leaf: number) => { readonly data: string; readonly id?: string },
): CutKind {
  return {
    name,
    share,
    tokens,
    transacted: false,
    payload: (n) =>
      Array.from({ length: tokens }, (_, at) => ({
        type: 'token',
        metadata: { of: labelOf(n) },
        ...leaf(n, at),
      })),
  }
}

function uuidOf(n: number, leaf: number): string {
  const digits = (leaf * 2 ** 24 + n).toString(16).padStart(12, '0')
  return `00000000-0000-4000-8000-${digits}`
}

/**
 * The clients' operations: operation `n` of a seed is always the same.
 *
 * Every plaintext begins with its operation and its index in it, so a token found in the database
 * can be traced even when no client ever got its id.
 */
import type { Json, JsonObject } from '../src/base/json.ts'
import { diceOf, type Dice } from './dice.ts'
import { digestOf, type MadeToken, type SentOperation } from './ledger.ts'

export interface WorkloadOperation {
  readonly sent: SentOperation
  /** In order: each may lean on the answers to those before it. */
  readonly requests: readonly WorkloadRequest[]
  /** Finds the tokens in the answers, in the order of `sent.digests`; null when there must not be any. */
  readonly tokensOf: (answers: readonly Json[]) => MadeToken[] | null
}

export interface WorkloadRequest {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: (answers: readonly Json[]) => string
  readonly body?: Json
  /** The number of the request that opened the transaction this one is part of. */
  readonly within?: number
}

/** The start of every plaintext. */
interface Mark {
  readonly op: number
  readonly leaf: number
}

/** More tokens than the store commits at once: these lists go in chunks. */
const LONG_LIST = 600
const ARRAY = 20
/** So few ids for so many operations that about every second one is taken. */
const CHOSEN_IDS = 20
const CHOSEN_IDS_FOR = 300
const IDEMPOTENT_SHARE = 0.6

/** Makes an operation: its leaves go through `leaf`, which knows their place. */
type Make = (leaf: LeafMaker) => MadeRequest

interface MadeRequest {
  readonly path: '/tokens' | '/tokenize'
  readonly body: Json
}

interface LeafMaker {
  /** A plain value. */
  readonly text: () => string
  /** A token request of type card. */
  readonly card: (options?: JsonObject) => JsonObject
  /** A generic token request. */
  readonly token: (options?: JsonObject) => JsonObject
  /** An id that may be taken. */
  readonly chosenId: () => string
}

interface OperationKind {
  readonly name: string
  /** Of all operations, in per mille. */
  readonly share: number
  readonly expect: SentOperation['expect']
  readonly make: Make
  /** The transaction it is made in, and how that ends; absent for none. */
  readonly ends?: 'commit' | 'rollback' | 'never'
  /** Whether its token is deleted again. */
  readonly deletes?: boolean
}

const KINDS: readonly OperationKind[] = [
  kind('single', 300, 'tokens', (leaf) => tokens(leaf.token())),
  kind('card', 150, 'tokens', (leaf) =>
    tokens(
      leaf.card({
        fingerprint_expression: '{{ data.holder }}',
        search_indexes: ['{{ data.number | last4 }}', '{{ data.holder | slice: 0, 40 }}'],
        metadata: { customer: 'Ada' },
      }),
    ),
  ),
  kind('single-tokenize', 100, 'tokens', (leaf) => tokenize(leaf.token())),
  kind('composite', 150, 'tokens', (leaf) =>
    tokenize({ name: leaf.text(), card: leaf.card(), notes: [leaf.text(), leaf.token()] }),
  ),
  kind('array', 40, 'tokens', (leaf) => tokenize(repeat(ARRAY, leaf.text))),
  kind('long', 2, 'tokens', (leaf) => tokenize(repeat(LONG_LIST, leaf.text))),
  kind('chosen', 80, 'either', (leaf) => tokens(leaf.token({ id: leaf.chosenId() }))),
  kind('chosen-last', 50, 'either', (leaf) =>
    tokenize([...repeat(ARRAY - 1, leaf.text), leaf.token({ id: leaf.chosenId() })]),
  ),
  kind('chosen-last-of-long', 1, 'either', (leaf) =>
    tokenize([...repeat(LONG_LIST, leaf.text), leaf.token({ id: leaf.chosenId() })]),
  ),
  { ...kind('deleted', 40, 'either', (leaf) => tokens(leaf.token())), deletes: true },
  kind('invalid', 40, 'refusal', (leaf) => tokens(spoilt(leaf.card()))),
  kind('invalid-last', 60, 'refusal', (leaf) =>
    tokenize([...repeat(ARRAY - 1, leaf.text), spoilt(leaf.card())]),
  ),
  { ...kind('committed', 60, 'tokens', transacted(ARRAY)), ends: 'commit' },
  { ...kind('committed-long', 2, 'tokens', transacted(LONG_LIST)), ends: 'commit' },
  { ...kind('rolled-back', 30, 'refusal', transacted(ARRAY)), ends: 'rollback' },
  { ...kind('rolled-back-long', 1, 'refusal', transacted(LONG_LIST)), ends: 'rollback' },
  { ...kind('left-open', 20, 'refusal', transacted(ARRAY)), ends: 'never' },
]

/** Returns operation `op` of `seed`. */
export function operation(seed: number, op: number): WorkloadOperation {
  const dice = diceOf(seed, op)
  const { name, expect, make, ends, deletes = false } = draw(dice)
  const digests: string[] = []
  const marked = (): string => `${op}.${digests.length}:${filler(dice)}`
  const note = <Data extends Json>(data: Data): Data => {
    digests.push(digestOf(data))
    return data
  }
  const leaf: LeafMaker = {
    chosenId: () => chosenId(op, dice),
    text: () => note(marked()),
    token: (options = {}) => ({ type: 'token', data: note(marked()), ...options }),
    card: (options = {}) => ({ type: 'card', data: note(cardOf(marked(), dice)), ...options }),
  }
  const { path, body } = make(leaf)
  const idempotencyKey = dice() < IDEMPOTENT_SHARE ? `${seed}-${op}` : null
  const post: WorkloadRequest = { method: 'POST', path: () => path, body }
  const plain = deletes ? [post, DELETE] : [post]
  const whole = ends === undefined ? plain : transaction(post, leaf, ends)
  return {
    sent: { op, kind: name, expect, idempotencyKey, digests },
    requests: whole,
    tokensOf: (answers) => {
      if (deletes) return null
      if (ends === undefined) return tokensIn(body, answers[0]!)
      if (ends !== 'commit') return null
      return [...tokensIn(body, answers[1]!), { id: idIn(answers[2]!) }]
    },
  }
}

/** Opens a transaction, makes tokens, makes one more and changes it, and ends the transaction or does not. */
function transaction(
  post: WorkloadRequest,
  leaf: LeafMaker,
  ends: NonNullable<OperationKind['ends']>,
): readonly WorkloadRequest[] {
  const within = 0
  const { data } = leaf.token()
  return [
    { method: 'POST', path: () => '/transactions' },
    { ...post, within },
    { method: 'POST', path: () => '/tokens', body: { data: 'not yet' }, within },
    {
      method: 'PATCH',
      path: (answers) => `/tokens/${idIn(answers[2]!)}`,
      body: { data: data! },
      within,
    },
    ...(ends === 'never'
      ? []
      : [
          {
            method: 'POST' as const,
            path: (answers: readonly Json[]) => `/transactions/${idIn(answers[0]!)}/${ends}`,
          },
        ]),
  ]
}

/** Asked for again it finds nothing, which is as good. */
const DELETE: WorkloadRequest = { method: 'DELETE', path: ([answer]) => `/tokens/${idIn(answer!)}` }

function idIn(answer: Json): string {
  return (answer as { id: string }).id
}

/** Where a plaintext comes from, or null when it is none of ours. */
export function markOf(data: Json | undefined): Mark | null {
  const text = typeof data === 'string' ? data : (data as JsonObject | undefined)?.['holder']
  const match = /^(\d+)\.(\d+):/.exec(typeof text === 'string' ? text : '')
  return match === null ? null : { op: Number(match[1]), leaf: Number(match[2]) }
}

function kind(
  name: string,
  share: number,
  expect: SentOperation['expect'],
  make: Make,
): OperationKind {
  return { name, share, expect, make }
}

/** One request's share of a transaction. */
function transacted(count: number): Make {
  return (leaf) => tokenize([...repeat(count, leaf.text), leaf.card()])
}

function tokens(body: Json): MadeRequest {
  return { path: '/tokens', body }
}

function tokenize(body: Json): MadeRequest {
  return { path: '/tokenize', body }
}

function repeat(count: number, make: () => string): string[] {
  return Array.from({ length: count }, make)
}

function chosenId(op: number, dice: Dice): string {
  return `chosen@${Math.floor(op / CHOSEN_IDS_FOR)}.${Math.floor(dice() * CHOSEN_IDS)}`
}

function cardOf(holder: string, dice: Dice): JsonObject {
  return {
    number: dice() < 0.5 ? '4242424242424242' : '5555555555554444',
    expiration_month: 1 + Math.floor(dice() * 12),
    expiration_year: 2030,
    holder,
  }
}

function spoilt(card: JsonObject): JsonObject {
  return { ...card, data: { ...(card['data'] as JsonObject), number: '4242424242424241' } }
}

/** Walks payload and answer side by side: where the payload has a leaf, the answer has its token. */
function tokensIn(payload: Json, answer: Json): MadeToken[] {
  if (typeof payload !== 'object' || payload === null) return [{ id: answer as string }]
  if (!Array.isArray(payload) && payload['data'] !== undefined) {
    const { id, fingerprint } = answer as { id: string; fingerprint?: string }
    return [{ id, ...(fingerprint === undefined ? {} : { fingerprint }) }]
  }
  return Object.entries(payload).flatMap(([name, it]) =>
    tokensIn(it, (answer as JsonObject)[name]!),
  )
}

function draw(dice: Dice): OperationKind {
  let left = dice() * KINDS.reduce((sum, it) => sum + it.share, 0)
  return KINDS.find((it) => (left -= it.share) < 0)!
}

/** Text of every sort, mostly short, now and then longer than a page of the database. */
function filler(dice: Dice): string {
  const characters = Math.floor(dice() < 0.01 ? dice() * 20_000 : dice() * 40)
  let text = ''
  while (text.length < characters) text += SCRAPS[Math.floor(dice() * SCRAPS.length)]!
  return text
}

const SCRAPS = ['a', 'Zürich', ' ', '\u0000', '"\\', '\r\n', '🂡', 'ß', '{{', '\u2028', '漢字', '0']

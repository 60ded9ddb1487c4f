/**
 * What the clients ask for: operation `n` of a seed is always the same.
 *
 * Every plaintext begins with its operation and its place in it, so that a token found in the database
 * tells where it comes from even when nobody was ever told its id.
 */
import type { Json, JsonObject } from '../src/base/json.ts'
import { diceOf, type Dice } from './dice.ts'
import { digestOf, type MadeToken, type Sent } from './ledger.ts'

export interface Operation {
  readonly sent: Sent
  readonly path: '/tokens' | '/tokenize'
  readonly body: Json
  /** Finds the tokens in the answer, in the order of `sent.digests`. */
  readonly tokensOf: (answer: Json) => MadeToken[]
}

/** The start of every plaintext. */
interface Mark {
  readonly op: number
  readonly leaf: number
}

/** More tokens than the store commits at once: these lists go in slices. */
const LONG_LIST = 600
const ARRAY = 20
/** So few ids for so many operations that about every second one is taken. */
const CHOSEN_IDS = 20
const CHOSEN_IDS_FOR = 300
const IDEMPOTENT_SHARE = 0.6

/** Makes an operation: its leaves go through `leaf`, which knows their place. */
type Make = (leaf: LeafMaker) => Pick<Operation, 'path' | 'body'>

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

interface Kind {
  readonly name: string
  /** Of all operations, in per mille. */
  readonly share: number
  readonly expect: Sent['expect']
  readonly make: Make
}

const KINDS: readonly Kind[] = [
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
  kind('invalid', 40, 'refusal', (leaf) => tokens(spoilt(leaf.card()))),
  kind('invalid-last', 60, 'refusal', (leaf) =>
    tokenize([...repeat(ARRAY - 1, leaf.text), spoilt(leaf.card())]),
  ),
]

/** Returns operation `op` of `seed`. */
export function operation(seed: number, op: number): Operation {
  const dice = diceOf(seed, op)
  const { name, expect, make } = draw(dice)
  const digests: string[] = []
  const marked = (): string => `${op}.${digests.length}:${filler(dice)}`
  const note = <Data extends Json>(data: Data): Data => {
    digests.push(digestOf(data))
    return data
  }
  const { path, body } = make({
    chosenId: () => chosenId(op, dice),
    text: () => note(marked()),
    token: (options = {}) => ({ type: 'token', data: note(marked()), ...options }),
    card: (options = {}) => ({ type: 'card', data: note(cardOf(marked(), dice)), ...options }),
  })
  const idempotencyKey = dice() < IDEMPOTENT_SHARE ? `${seed}-${op}` : null
  return {
    sent: { op, kind: name, expect, idempotencyKey, digests },
    path,
    body,
    tokensOf: (answer) => tokensIn(body, answer),
  }
}

/** Where a plaintext comes from, or null when it is none of ours. */
export function markOf(data: Json | undefined): Mark | null {
  const text = typeof data === 'string' ? data : (data as JsonObject | undefined)?.['holder']
  const match = /^(\d+)\.(\d+):/.exec(typeof text === 'string' ? text : '')
  return match === null ? null : { op: Number(match[1]), leaf: Number(match[2]) }
}

function kind(name: string, share: number, expect: Sent['expect'], make: Make): Kind {
  return { name, share, expect, make }
}

function tokens(body: Json): Pick<Operation, 'path' | 'body'> {
  return { path: '/tokens', body }
}

function tokenize(body: Json): Pick<Operation, 'path' | 'body'> {
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

function draw(dice: Dice): Kind {
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

/** Sends what was typed to the vault. A repeated submission has the same idempotency key, so it makes one token. */
import type { FieldsToken, TokenOptions } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import type { FrameSession } from './frame-session.ts'
import { refusal } from './problems.ts'
import { areStrings, isObject, isString, pick } from './known-members.ts'
import { CallError, isUndecided, UNREACHABLE, type FrameClient } from './frame-client.ts'

interface Submission {
  /** The request body. The same content again is the same submission. */
  readonly content: string
  readonly idempotencyKey: string
  readonly result: Promise<FieldsToken>
  state: 'sent' | 'done' | 'failed'
  /** When it was done, in milliseconds on the clock. */
  doneAt: number
}

/** Ours, in milliseconds: how long the same values count as a double click rather than another submission. */
const SAME_MS_MAX = 30_000

export class Submissions {
  readonly #client: FrameClient
  readonly #publicKey: string
  readonly #now: () => number
  #latest: Submission | null = null

  /** `now` is a clock in milliseconds. */
  constructor(client: FrameClient, publicKey: string, now = (): number => performance.now()) {
    this.#client = client
    this.#publicKey = publicKey
    this.#now = now
  }

  /** Creates a token, or returns that of the same submission. Throws a CallError. */
  async create(
    type: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    const content = JSON.stringify({ type, data, ...options })
    const last = this.#latest?.content === content ? this.#latest : null
    if (last !== null && this.#isSame(last)) return await last.result
    // If the outcome of a failed call is unknown, the vault recognizes its idempotency key.
    const idempotencyKey = last?.state === 'failed' ? last.idempotencyKey : crypto.randomUUID()
    const result = this.#create(content, idempotencyKey)
    const submission: Submission = { content, idempotencyKey, result, state: 'sent', doneAt: 0 }
    this.#latest = submission
    try {
      const token = await result
      submission.state = 'done'
      submission.doneAt = this.#now()
      return token
    } catch (error) {
      submission.state = 'failed'
      // The vault has decided, so the next call is a new submission.
      if (!isUndecided(error) && this.#latest === submission) this.#latest = null
      throw error
    }
  }

  /** Updates a stored token, as `session` allows. Members without a field here keep their value. Throws a CallError. */
  async update(
    session: Pick<FrameSession, 'call'>,
    tokenId: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    const body = JSON.stringify({ data, ...options })
    return tokenOf(await session.call({ method: 'PATCH', path: tokenPathOf(tokenId), body }))
  }

  /** Forgets the last submission, since the values were cleared. */
  forget(): void {
    this.#latest = null
  }

  /** Whether a call with the same content gets the last result: that is in flight, or was just done. */
  #isSame({ state, doneAt }: Submission): boolean {
    return state === 'sent' || (state === 'done' && this.#now() - doneAt < SAME_MS_MAX)
  }

  async #create(body: string, idempotencyKey: string): Promise<FieldsToken> {
    const apiKey = this.#publicKey
    const call = { method: 'POST', path: '/tokens', body, apiKey, idempotencyKey } as const
    return tokenOf(await this.#client.call(call))
  }
}

/** Returns the path of a token whose id comes from the page. The browser would resolve `..` away. Throws a CallError. */
export function tokenPathOf(tokenId: unknown): string {
  if (typeof tokenId !== 'string' || /^\.{0,2}$/.test(tokenId) || !tokenId.isWellFormed()) {
    throw new CallError(refusal('token_id_invalid', 'Pass the id of a token.'))
  }
  return `/tokens/${encodeURIComponent(tokenId)}`
}

/** Copies what the page may know of a token, never its data, which an access rule may show in full. */
function tokenOf({
  id,
  type,
  containers,
  metadata,
  expires_at,
  created_at,
}: Readonly<Record<string, unknown>>): FieldsToken {
  if (!isString(id) || !isString(type)) throw new CallError(UNREACHABLE)
  return {
    id,
    type,
    ...(areStrings(containers) && { containers }),
    ...(isObject(metadata) && { metadata: pick(metadata, isString) }),
    ...((isString(expires_at) || expires_at === null) && { expires_at }),
    ...(isString(created_at) && { created_at }),
  }
}

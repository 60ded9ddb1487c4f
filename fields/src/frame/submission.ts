/** Sends what was typed to the vault. A repeated submission has the same idempotency key, so it makes one token. */
import type { FieldsToken, TokenOptions } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import type { FrameSession } from './frame-session.ts'
import { refusal } from './problems.ts'
import { areStrings, isObject, isString, pick } from './known-members.ts'
import { CallError, isUndecided, UNREACHABLE, type FrameClient } from './frame-client.ts'

interface Submission {
  /** What is sent: the same content again is the same submission. */
  readonly content: string
  readonly idempotencyKey: string
  readonly result: Promise<FieldsToken>
  state: 'sent' | 'done' | 'failed'
  /** When it was done, in milliseconds of the clock. */
  doneAt: number
}

/** Ours: how long the same values are a double click, and not another submission. */
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

  /** Creates a token. */
  async create(
    type: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    const content = JSON.stringify({ type, data, ...options })
    const last = this.#latest?.content === content ? this.#latest : null
    if (last !== null && this.#isSame(last)) return await last.result
    // Failed with an open outcome: the vault recognizes the key.
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
      // The vault has decided: after a correction it is a new submission.
      if (!isUndecided(error) && this.#latest === submission) this.#latest = null
      throw error
    }
  }

  /** Changes a stored token, which `session` may do: what has no field here stays as it is. */
  async update(
    session: Pick<FrameSession, 'call'>,
    tokenId: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    const body = JSON.stringify({ data, ...options })
    return tokenOf(await session.call({ method: 'PATCH', path: tokenPathOf(tokenId), body }))
  }

  /** Forgets the last submission: the values were cleared. */
  forget(): void {
    this.#latest = null
  }

  /** Whether a call with the same content gets the result of `last`: it is in flight, or was done just now. */
  #isSame({ state, doneAt }: Submission): boolean {
    return state === 'sent' || (state === 'done' && this.#now() - doneAt < SAME_MS_MAX)
  }

  async #create(body: string, idempotencyKey: string): Promise<FieldsToken> {
    const apiKey = this.#publicKey
    const call = { method: 'POST', path: '/tokens', body, apiKey, idempotencyKey } as const
    return tokenOf(await this.#client.call(call))
  }
}

/** Returns the path of a token, whose id comes from the page. Of `..` the browser would make another path. Throws a CallError. */
export function tokenPathOf(tokenId: unknown): string {
  if (typeof tokenId !== 'string' || /^\.{0,2}$/.test(tokenId) || !tokenId.isWellFormed()) {
    throw new CallError(refusal('token_id_invalid', 'Pass the id of a token.'))
  }
  return `/tokens/${encodeURIComponent(tokenId)}`
}

/** Copies what the page may know of a token: never its data, of which an access rule may show everything. */
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

/** Sends what was typed to the vault. A repeated submission has the same idempotency key, so it makes one token. */
import type { FieldsToken, TokenOptions } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import { refusal } from './problems.ts'
import { areStrings, isObject, isString, pick } from './known-members.ts'
import { CallError, isUndecided, UNREACHABLE, type VaultClient } from './vault-client.ts'

interface Submission {
  /** What is sent: the same content again is the same submission. */
  readonly content: string
  readonly idempotencyKey: string
  readonly result: Promise<FieldsToken>
  failed: boolean
}

export class Submissions {
  readonly #client: VaultClient
  readonly #publicKey: string
  #latest: Submission | null = null

  constructor(client: VaultClient, publicKey: string) {
    this.#client = client
    this.#publicKey = publicKey
  }

  /** Creates a token. */
  async create(
    type: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    return await this.#send('POST', '/tokens', { type, data, ...options })
  }

  /** Changes a stored token: what has no field here stays as it is. */
  async update(
    tokenId: string,
    data: FieldData | string,
    options: TokenOptions,
  ): Promise<FieldsToken> {
    return await this.#send('PATCH', pathOf(tokenId), { data, ...options })
  }

  /** Forgets the last submission: the values were cleared. */
  forget(): void {
    this.#latest = null
  }

  async #send(method: 'POST' | 'PATCH', path: string, content: object): Promise<FieldsToken> {
    const body = JSON.stringify(content)
    const name = `${method} ${path} ${body}`
    const last = this.#latest?.content === name ? this.#latest : null
    // In flight, or done: a double click gets its result.
    if (last !== null && !last.failed) return await last.result
    const idempotencyKey = last?.idempotencyKey ?? crypto.randomUUID()
    const result = this.#client
      .call({ method, path, body, apiKey: this.#publicKey, idempotencyKey })
      .then(tokenOf)
    const submission: Submission = { content: name, idempotencyKey, result, failed: false }
    this.#latest = submission
    try {
      return await result
    } catch (error) {
      submission.failed = true
      // The vault has decided: after a correction it is a new submission.
      if (!isUndecided(error) && this.#latest === submission) this.#latest = null
      throw error
    }
  }
}

/** The id comes from the page. Of `..` the browser would make another path. */
function pathOf(tokenId: unknown): string {
  if (typeof tokenId !== 'string' || /^\.{0,2}$/.test(tokenId) || !tokenId.isWellFormed()) {
    throw new CallError(refusal('token_id_invalid', 'Pass the id of the token to change.'))
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

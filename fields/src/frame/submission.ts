/** Sends what was typed to the vault. A repeated submission has the same idempotency key, so it makes one token. */
import type { FieldsToken, TokenOptions } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import { isUndecided, type VaultClient } from './vault-client.ts'

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
    return await this.#send('PATCH', `/tokens/${encodeURIComponent(tokenId)}`, { data, ...options })
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

/** Copies what the page may know of a token: never its data, of which an access rule may show everything. */
function tokenOf(answer: unknown): FieldsToken {
  const { id, type, containers, metadata, expires_at, created_at } = answer as FieldsToken
  return {
    id,
    type,
    ...(containers !== undefined && { containers }),
    ...(metadata !== undefined && { metadata }),
    ...(expires_at !== undefined && { expires_at }),
    ...(created_at !== undefined && { created_at }),
  }
}

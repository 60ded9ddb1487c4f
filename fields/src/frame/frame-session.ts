/**
 * The session of an iframe, for what a public key alone may not do: update or show one stored token.
 *
 * The session's key stays in this document. The page gets the nonce, with which its backend authorizes the session for one token.
 */
import { isString } from './known-members.ts'
import { refusal } from './problems.ts'
import { CallError, UNREACHABLE, type FrameCall, type FrameClient } from './frame-client.ts'

export class FrameSession {
  readonly #client: FrameClient
  readonly #publicKey: string
  #key: string | null = null

  constructor(client: FrameClient, publicKey: string) {
    this.#client = client
    this.#publicKey = publicKey
  }

  /** Opens a session, which has no rights yet, and returns its nonce. Throws a CallError. */
  async open(): Promise<string> {
    const { session_key, nonce } = await this.#client.call({
      method: 'POST',
      path: '/sessions',
      apiKey: this.#publicKey,
    })
    if (!isString(session_key) || !isString(nonce)) throw new CallError(UNREACHABLE)
    this.#key = session_key
    return nonce
  }

  /** Calls the vault with the session's key. Throws a CallError, also if no session is open or it has expired. */
  async call(call: Omit<FrameCall, 'apiKey'>): Promise<Readonly<Record<string, unknown>>> {
    if (this.#key === null) {
      throw new CallError(
        refusal('session_missing', 'Open a session and have it authorized first.'),
      )
    }
    try {
      return await this.#client.call({ ...call, apiKey: this.#key })
    } catch (error) {
      if (!(error instanceof CallError) || error.problem.status !== 401) throw error
      const detail = 'The session has expired. Start again.'
      throw new CallError({ ...error.problem, code: 'session_expired', detail })
    }
  }

  forget(): void {
    this.#key = null
  }
}

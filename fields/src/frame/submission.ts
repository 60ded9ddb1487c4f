/** Sends what was typed to the vault. A repeated submission has the same idempotency key, so it makes one token. */
import type { FieldsProblem, FieldsToken, TokenOptions } from '../protocol/messages.ts'
import type { CardData } from './card-form.ts'

export interface SubmissionOptions {
  readonly publicKey: string
  readonly fetch: typeof fetch
  /** How long the vault may take to answer, in milliseconds. */
  readonly timeoutMs: number
}

/** Thrown for every failure, with what the page is told of it. */
export class SubmissionError extends Error {
  readonly problem: FieldsProblem

  constructor(problem: FieldsProblem) {
    super(problem.detail)
    this.problem = problem
  }
}

interface Submission {
  /** What is sent: the same content again is the same submission. */
  readonly content: string
  readonly idempotencyKey: string
  readonly result: Promise<FieldsToken>
  failed: boolean
}

export class Submissions {
  readonly #options: SubmissionOptions
  #latest: Submission | null = null

  constructor(options: SubmissionOptions) {
    this.#options = options
  }

  /** Creates a token. */
  async create(data: CardData, options: TokenOptions): Promise<FieldsToken> {
    return await this.#send('POST', '/tokens', { type: 'card', data, ...options })
  }

  /** Changes a stored token: what has no field here stays as it is. */
  async update(tokenId: string, data: CardData, options: TokenOptions): Promise<FieldsToken> {
    return await this.#send('PATCH', `/tokens/${encodeURIComponent(tokenId)}`, { data, ...options })
  }

  /** Forgets the last submission: the values were cleared. */
  forget(): void {
    this.#latest = null
  }

  async #send(method: 'POST' | 'PATCH', path: string, body: object): Promise<FieldsToken> {
    const text = JSON.stringify(body)
    const content = `${method} ${path} ${text}`
    const last = this.#latest?.content === content ? this.#latest : null
    // In flight, or done: a double click gets its result.
    if (last !== null && !last.failed) return await last.result
    const idempotencyKey = last?.idempotencyKey ?? crypto.randomUUID()
    const result = this.#request(method, path, text, idempotencyKey)
    const submission: Submission = { content, idempotencyKey, result, failed: false }
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

  async #request(
    method: 'POST' | 'PATCH',
    path: string,
    body: string,
    idempotencyKey: string,
  ): Promise<FieldsToken> {
    const { publicKey, timeoutMs } = this.#options
    let response: Response
    let answer: unknown
    try {
      response = await this.#options.fetch(path, {
        method,
        headers: {
          'BT-API-KEY': publicKey,
          'BT-IDEMPOTENCY-KEY': idempotencyKey,
          'Content-Type': method === 'POST' ? 'application/json' : 'application/merge-patch+json',
        },
        body,
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'error',
        referrerPolicy: 'no-referrer',
        signal: AbortSignal.timeout(timeoutMs),
      })
      answer = await response.json()
    } catch (error) {
      throw new SubmissionError(unanswered(error))
    }
    if (!response.ok) throw new SubmissionError(problemOf(response, answer))
    return tokenOf(answer)
  }
}

/** Whether the vault may have done it, or asks to try again: a repetition needs the same idempotency key. */
function isUndecided(error: unknown): boolean {
  if (!(error instanceof SubmissionError)) return true
  const { status } = error.problem
  return status === 0 || status === 408 || status === 409 || status === 429 || status >= 500
}

function unanswered(error: unknown): FieldsProblem {
  const timedOut = error instanceof DOMException && error.name === 'TimeoutError'
  if (timedOut) {
    return {
      title: 'Timeout',
      status: 0,
      code: 'timeout',
      detail: 'The vault did not answer in time. Call again: the same values make one token.',
    }
  }
  const offline = !navigator.onLine
  return {
    title: offline ? 'Offline' : 'Unreachable',
    status: 0,
    code: offline ? 'offline' : 'unreachable',
    detail: offline
      ? 'The browser is offline. Call again once it is online: the same values make one token.'
      : 'The vault cannot be reached. Call again: the same values make one token.',
  }
}

/** Copies the members of an error by name: whatever else an answer may hold stays here. */
function problemOf(response: Response, answer: unknown): FieldsProblem {
  const { title, detail, code, errors } = (answer ?? {}) as Partial<FieldsProblem>
  const retryAfter = Number(response.headers.get('retry-after') ?? NaN)
  return {
    title: typeof title === 'string' ? title : response.statusText,
    status: response.status,
    detail: typeof detail === 'string' ? detail : 'The vault refused the request.',
    ...(typeof code === 'string' && { code }),
    ...(typeof errors === 'object' && errors !== null && { errors }),
    ...(Number.isFinite(retryAfter) && { retryAfter }),
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

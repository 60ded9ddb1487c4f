/** Calls the vault that served the iframe. Errors are told in the service's format, and say nothing else. */
import type { FieldsProblem } from '../protocol/messages.ts'

/** Thrown for every failure, with what the page is told of it. */
export class CallError extends Error {
  readonly problem: FieldsProblem

  constructor(problem: FieldsProblem) {
    super(problem.detail)
    this.problem = problem
  }
}

export interface VaultCall {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly apiKey: string
  /** JSON. */
  readonly body?: string
  readonly idempotencyKey?: string
}

export interface VaultClient {
  /** Returns the body of a successful answer. Throws a CallError. */
  readonly call: (call: VaultCall) => Promise<unknown>
}

/** Returns a client. `timeoutMs` is how long the vault may take to answer. */
export function vaultClient(fetcher: typeof fetch, timeoutMs: number): VaultClient {
  return { call }

  async function call(request: VaultCall): Promise<unknown> {
    const { method, path, apiKey, body, idempotencyKey } = request
    let response: Response
    let text: string
    try {
      response = await fetcher(path, {
        method,
        headers: {
          'BT-API-KEY': apiKey,
          ...(idempotencyKey !== undefined && { 'BT-IDEMPOTENCY-KEY': idempotencyKey }),
          ...(body !== undefined && { 'Content-Type': CONTENT_TYPE[method] }),
        },
        ...(body !== undefined && { body }),
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'error',
        referrerPolicy: 'no-referrer',
        signal: AbortSignal.timeout(timeoutMs),
      })
      text = await response.text()
    } catch (error) {
      throw new CallError(unanswered(error))
    }
    const answer = parse(text)
    if (!response.ok) throw new CallError(problemOf(response, answer))
    if (answer === null) throw new CallError(unanswered(null))
    return answer
  }
}

const CONTENT_TYPE = {
  GET: 'application/json',
  POST: 'application/json',
  PATCH: 'application/merge-patch+json',
}

/** Returns null for anything but JSON: it comes from a proxy between, not from the vault. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Whether the vault may have done what was asked, or wants it to be asked again later. */
export function isUndecided(error: unknown): boolean {
  if (!(error instanceof CallError)) return true
  const { status } = error.problem
  return status === 0 || status === 408 || status === 409 || status === 429 || status >= 500
}

function unanswered(error: unknown): FieldsProblem {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return {
      title: 'Timeout',
      status: 0,
      code: 'timeout',
      detail: 'The vault did not answer in time. Call again: the same values make one token.',
    }
  }
  if (!navigator.onLine) {
    return {
      title: 'Offline',
      status: 0,
      code: 'offline',
      detail:
        'The browser is offline. Call again once it is online: the same values make one token.',
    }
  }
  return {
    title: 'Unreachable',
    status: 0,
    code: 'unreachable',
    detail: 'The vault cannot be reached. Call again: the same values make one token.',
  }
}

/** Copies the members of an error by name: whatever else an answer may hold stays here. */
function problemOf(response: Response, answer: unknown): FieldsProblem {
  const { title, detail, code, errors } = (answer ?? {}) as Partial<FieldsProblem>
  const retryAfter = Number(response.headers.get('retry-after') ?? NaN)
  const { status, statusText } = response
  return {
    title: typeof title === 'string' ? title : statusText,
    status,
    detail: typeof detail === 'string' ? detail : 'The vault refused the request.',
    code: typeof code === 'string' ? code : status === 429 ? 'rate_limited' : 'unreachable',
    ...(typeof errors === 'object' && errors !== null && { errors }),
    ...(Number.isFinite(retryAfter) && { retryAfter }),
  }
}

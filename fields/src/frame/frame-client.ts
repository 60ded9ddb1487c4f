/** Calls the vault that served the iframe. Errors have the service's format and carry nothing else. */
import type { FieldsProblem } from '../protocol/messages.ts'
import { areStrings, isObject, isString, pick } from './known-members.ts'

/** Thrown for every failure, with the problem that is reported to the page. */
export class CallError extends Error {
  readonly problem: FieldsProblem

  constructor(problem: FieldsProblem) {
    super(problem.detail)
    this.problem = problem
  }
}

export interface FrameCall {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly apiKey: string
  /** JSON. */
  readonly body?: string
  readonly idempotencyKey?: string
}

export interface FrameClient {
  /** Returns the members of a successful response. Throws a CallError. */
  readonly call: (call: FrameCall) => Promise<Readonly<Record<string, unknown>>>
}

/** Returns a client. The vault must answer within `timeoutMs` milliseconds. */
export function frameClient(
  fetcher: typeof fetch,
  timeoutMs: number,
  isOnline = (): boolean => navigator.onLine,
): FrameClient {
  return { call }

  async function call(request: FrameCall): Promise<Readonly<Record<string, unknown>>> {
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
      throw new CallError(unanswered(error, isOnline()))
    }
    const answer = membersOf(text)
    if (!response.ok) throw new CallError(problemOf(response, answer ?? {}))
    if (answer === null) throw new CallError(UNREACHABLE)
    return answer
  }
}

const CONTENT_TYPE = {
  GET: 'application/json',
  POST: 'application/json',
  PATCH: 'application/merge-patch+json',
}

/** Also used for a response that is not the vault's, such as the login page of a hotel's network. */
export const UNREACHABLE: FieldsProblem = {
  title: 'Unreachable',
  status: 0,
  code: 'unreachable',
  detail: 'The vault cannot be reached. Call again: the same values make one token.',
}

/** Whether the outcome is unknown, or the vault asks to be called again later. */
export function isUndecided(error: unknown): boolean {
  if (!(error instanceof CallError)) return true
  const { status } = error.problem
  return status === 0 || status === 408 || status === 409 || status === 429 || status >= 500
}

const TIMEOUT: FieldsProblem = {
  title: 'Timeout',
  status: 0,
  code: 'timeout',
  detail: 'The vault did not answer in time. Call again: the same values make one token.',
}

const OFFLINE: FieldsProblem = {
  title: 'Offline',
  status: 0,
  code: 'offline',
  detail: 'The browser is offline. Call again once it is online: the same values make one token.',
}

function unanswered(error: unknown, online: boolean): FieldsProblem {
  if (error instanceof DOMException && error.name === 'TimeoutError') return TIMEOUT
  return online ? UNREACHABLE : OFFLINE
}

/** Returns the members of a JSON object; null for any other text, since a proxy in between may answer in HTML. */
function membersOf(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const answer: unknown = JSON.parse(text)
    return isObject(answer) ? answer : null
  } catch {
    return null
  }
}

/** Copies the members of an error by name, so that nothing else in the response reaches the page. */
function problemOf(
  response: Response,
  { title, detail, code, errors }: Readonly<Record<string, unknown>>,
): FieldsProblem {
  const retryAfter = response.headers.get('retry-after') ?? ''
  return {
    title: isString(title) ? title : response.statusText,
    status: response.status,
    detail: isString(detail) ? detail : 'The vault refused the request.',
    code: isString(code) ? code : response.status === 429 ? 'rate_limited' : 'unreachable',
    ...(isObject(errors) && { errors: pick(errors, areStrings) }),
    // A date is also valid here, but needs a clock that agrees with the server's.
    ...(/^\d{1,9}$/.test(retryAfter) && { retryAfter: Number(retryAfter) }),
  }
}

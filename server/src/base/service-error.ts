import { JOB_BUSY_MS, REACTOR_WAIT_MS_MAX, TRANSACTIONS_RETRY_MS } from './limits.ts'

/**
 * The refusals of this service: expected errors that the caller can act on.
 *
 * One line each: add a line here, throw it, describe it in docs/errors.md. `status` is the HTTP status; `detail` is fixed text
 * and never carries data, though words of ours, such as ids, may be listed after it, and advice may follow. Variable text goes into `errors`: the path
 * of a member and its error, never its value. Any other failure is a fault, a 500.
 */
export const REFUSALS = {
  body_invalid: { status: 400, detail: 'The body is not valid.' },
  body_json_invalid: { status: 400, detail: 'The body is not valid JSON.' },
  body_missing: { status: 400, detail: 'A JSON body is required.' },
  header_duplicated: { status: 400, detail: 'A header that may appear once was sent twice.' },
  header_invalid: { status: 400, detail: 'A header is not valid.' },
  query_invalid: { status: 400, detail: 'The query parameters are not valid.' },
  payload_tokens_max: { status: 400, detail: 'The payload holds too many tokens.' },
  token_type_unknown: { status: 400, detail: 'The token type is not known.' },
  token_data_invalid: { status: 400, detail: 'The token data is not valid.' },
  token_invalid: { status: 400, detail: 'The token request is not valid.' },
  search_invalid: { status: 400, detail: 'The search query is not valid.' },
  cursor_invalid: { status: 400, detail: 'The cursor does not belong to this list.' },
  answer_too_large: { status: 400, detail: 'The answer would be too large: ask for less at once.' },
  detokenize_tokens_max: {
    status: 400,
    detail: 'The payload names too many tokens, or has too many expressions.',
  },
  detokenize_tokens_unknown: { status: 400, detail: 'Failed to detokenize some tokens.' },
  path_invalid: {
    status: 400,
    detail: 'The path after /proxy must not contain . or .. segments, or backslashes.',
  },
  destination_refused: { status: 400, detail: 'Requests to this destination are not allowed.' },
  reactor_application_gone: {
    status: 400,
    detail: 'The application that the reactor acts for no longer exists.',
  },
  expression_invalid: { status: 400, detail: 'An expression is not valid.' },
  key_missing: { status: 401, detail: 'The BT-API-KEY header is required.' },
  key_unknown: { status: 401, detail: 'The API key is not known, was revoked, or has expired.' },
  permission_missing: { status: 403, detail: 'The API key lacks the permission.' },
  plan_insufficient: {
    status: 403,
    detail: 'This operation needs the enterprise plan; the tenant is on the standard plan.',
  },
  key_type_unfit: {
    status: 403,
    detail: 'Keys of this type cannot call this operation.',
  },
  origin_not_allowed: {
    status: 403,
    detail: 'Pages of this origin may not use this key.',
  },
  rights_exceeded: {
    status: 403,
    detail: 'A session cannot be granted more than the authorizing application may do itself.',
  },
  route_not_found: { status: 404, detail: 'There is nothing at this path.' },
  application_not_found: { status: 404, detail: 'There is no such application.' },
  application_key_not_found: { status: 404, detail: 'There is no such application key.' },
  application_template_not_found: {
    status: 404,
    detail: 'There is no such application template.',
  },
  session_not_found: { status: 404, detail: 'There is no session with this nonce.' },
  proxy_not_found: { status: 404, detail: 'There is no such proxy.' },
  callback_not_found: { status: 404, detail: 'No dead letter has this id.' },
  reactor_result_not_found: {
    status: 404,
    detail: 'There is no such result, or it is not ready yet.',
  },
  reactor_not_found: { status: 404, detail: 'There is no such reactor.' },
  token_not_found: { status: 404, detail: 'There is no such token.' },
  transaction_not_found: { status: 404, detail: 'There is no such transaction.' },
  method_not_allowed: { status: 405, detail: 'The path does not support this method.' },
  request_timeout: { status: 408, detail: 'The request took too long to arrive.' },
  destination_timeout: { status: 408, detail: 'The destination did not answer in time.' },
  token_locked: {
    status: 409,
    detail: 'An open transaction has changed the token: wait until it ends.',
  },
  proxy_busy: {
    status: 409,
    detail: 'Concurrent requests kept changing the proxy: read it and try again.',
  },
  reactor_busy: {
    status: 409,
    detail: 'Concurrent requests kept changing the reactor: read it and try again.',
  },
  token_busy: {
    status: 409,
    detail: 'Concurrent requests kept changing the token: read it and try again.',
  },
  transaction_full: {
    status: 409,
    detail: 'The transaction is full: commit it and continue in another.',
  },
  transaction_committed: { status: 409, detail: 'The transaction is committed.' },
  transaction_rolled_back: { status: 409, detail: 'The transaction is rolled back.' },
  transaction_revoked: {
    status: 409,
    detail:
      'A key that made changes in the transaction no longer works: roll the transaction back.',
  },
  transaction_expired: { status: 409, detail: 'The transaction is expired.' },
  token_id_taken: { status: 409, detail: 'A token with this id already exists.' },
  session_authorized: { status: 409, detail: 'The session is already authorized.' },
  idempotency_in_flight: {
    status: 409,
    detail: 'A request with this idempotency key is still in progress.',
  },
  body_too_large: { status: 413, detail: 'The body is larger than 5 MiB.' },
  public_body_too_large: {
    status: 413,
    detail:
      'The body is larger than this tenant allows with a public key: split it, use an authorized session or a private key, or raise the setting `public_body_bytes_max`.',
  },
  content_type_unsupported: {
    status: 415,
    detail:
      'Send JSON as application/json, a patch as application/merge-patch+json, and neither with a content coding.',
  },
  expectation_unmet: {
    status: 417,
    detail: 'Unsupported Expect header: only `100-continue` is accepted.',
  },
  application_keys_several: {
    status: 422,
    detail: 'The application has several keys: delete all but one, or add and delete keys instead.',
  },
  application_keys_max: {
    status: 422,
    detail: 'The application has reached its maximum number of keys.',
  },
  reactor_code_invalid: {
    status: 422,
    detail: 'The code does not compile, or exports no function.',
  },
  jobs_full: { status: 429, detail: 'Too many invocations are waiting to run or to be delivered.' },
  job_storage_full: {
    status: 429,
    detail:
      'The asynchronous invocations of the tenant take up all the space they may, with their results: have results sent to a callback, or wait until stored ones expire.',
    retryAfterS: JOB_BUSY_MS / 1000,
  },
  requests_max: {
    status: 429,
    detail: 'This public key, or this address with it, sends too many requests. Retry later.',
  },
  transactions_open_max: {
    status: 429,
    detail: 'The application has too many open transactions: commit some, or roll them back.',
    retryAfterS: TRANSACTIONS_RETRY_MS / 1000,
  },
  headers_too_large: { status: 431, detail: 'There are too many headers, or they are too large.' },
  reactor_error: { status: 500, detail: 'Reactor Runtime Error' },
  reactor_interrupted: { status: 500, detail: 'Reactor Runtime Error' },
  reactor_result_expired: { status: 500, detail: 'Reactor Runtime Error' },
  value_unreadable: {
    status: 500,
    detail: 'A stored value is damaged and cannot be decrypted; the service log names it.',
  },
  destination_unresolved: {
    status: 502,
    detail: 'The name of the destination does not resolve to an address.',
  },
  destination_unreachable: { status: 502, detail: 'The vault cannot connect to the destination.' },
  destination_untrusted: {
    status: 502,
    detail: 'The destination has no valid certificate for its name, or does not support TLS 1.2.',
  },
  destination_reset: {
    status: 502,
    detail: 'The destination closed the connection before its response was complete.',
  },
  destination_answer_invalid: {
    status: 502,
    detail: 'The destination did not answer with valid HTTP.',
  },
  reactors_busy: {
    status: 503,
    detail: 'Too many reactors of this tenant are running or queued.',
    retryAfterS: REACTOR_WAIT_MS_MAX / 1000,
    ofCaller: true,
  },
  reactors_unavailable: {
    status: 503,
    detail: 'Reactors cannot run now; the service log says why.',
  },
  tenant_busy: {
    status: 503,
    detail: "This tenant's in-flight requests use its whole memory quota. Retry later.",
    ofCaller: true,
  },
  rights_changed: {
    status: 503,
    detail: 'The rights of the key, or the proxy, changed meanwhile. Nothing was done: repeat it.',
    ofCaller: true,
  },
  store_unavailable: {
    status: 503,
    detail: 'The outcome is unknown: repeat the request, preferably with an idempotency key.',
    detailOfReads: 'The store is not available; the request changed nothing. Retry later.',
  },
} as const satisfies Record<string, Refusal>

export interface Refusal {
  readonly status: number
  readonly detail: string
  /** Replaces `detail` for a request that changes nothing. */
  readonly detailOfReads?: string
  /** When to retry. Only with a 429 or 503; by default after a second. */
  readonly retryAfterS?: number
  /** With a 5xx: the caller asked for too much, and the operator has nothing to fix. */
  readonly ofCaller?: true
}

export type RefusalCode = keyof typeof REFUSALS

/** Path of a member (`data.number`, `[2].data`) to its errors. Never a value. */
export type MemberErrors = Readonly<Record<string, readonly string[]>>

interface ServiceErrorOptions extends ErrorOptions {
  readonly named?: readonly string[]
  readonly advice?: string | null
  readonly retryAfterS?: number
}

export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: RefusalCode
  readonly errors: MemberErrors | undefined
  /** Items listed at the end of the detail: UUIDs of ours, names of permissions. Never text that a caller sent. */
  readonly named: readonly string[]
  /** A sentence after the detail that says what to do instead. Fixed text and words of ours, like `named`. */
  readonly advice: string | null
  /** When to retry, of a 429 or 503. */
  readonly retryAfterS: number

  constructor(
    code: RefusalCode,
    errors?: MemberErrors,
    { named = [], advice = null, retryAfterS, ...options }: ServiceErrorOptions = {},
  ) {
    const { stackTraceLimit } = Error
    if (isCallersOwn(REFUSALS[code])) Error.stackTraceLimit = 0
    super(REFUSALS[code].detail, options)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.errors = errors
    this.named = named
    this.advice = advice
    const refusal: Refusal = REFUSALS[code]
    this.retryAfterS = retryAfterS ?? refusal.retryAfterS ?? 1
  }

  get status(): number {
    return REFUSALS[this.code].status
  }

  get ofCaller(): boolean {
    const refusal: Refusal = REFUSALS[this.code]
    return refusal.ofCaller ?? false
  }
}

/**
 * Whether the operator need not see it. Then no stack is captured either: that takes longer than the rest of a refusal, and
 * strangers may cause as many as they like.
 */
function isCallersOwn({ status, ofCaller }: Refusal): boolean {
  return status < 500 || ofCaller === true
}

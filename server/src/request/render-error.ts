/**
 * Renders errors for callers; no other code gives them their shape.
 *
 * A refusal shows its status, title, detail, code and the members at fault; its detail may differ for a `readOnly` request. A fault shows a 500 and no details. The content type
 * is `application/json`, never `application/problem+json`, and `title`, `status` and `detail` are always present, because clients
 * rely on it.
 * Source: interface.md, Errors.
 */
import { z } from 'zod'
import type { JsonObject } from '../base/json.ts'
import { REFUSALS, ServiceError, type Refusal } from '../base/service-error.ts'
import { UnreadableValue } from '../ports/unreadable-value.ts'

/** Schema of an error, for the OpenAPI document. */
export const problem = z
  .object({
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().describe('Stable word for the refusal; docs/errors.md lists them.').optional(),
    errors: z
      .record(z.string(), z.array(z.string()))
      .describe('Dotted path of a member to what is wrong with it.')
      .optional(),
  })
  .meta({ id: 'Problem', description: 'Every error of the service.' })

export const proxyProblem = z.object({ proxy_error: problem }).meta({
  id: 'ProxyProblem',
  description: 'Every error of the vault where requests are forwarded.',
})

/** The status in words. */
export const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
}

export const VALIDATION_TITLE = 'One or more validation errors occurred.'

export function renderError(
  thrown: unknown,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): { status: number; body: JsonObject } {
  const error = thrown instanceof UnreadableValue ? unreadable(thrown) : thrown
  if (!(error instanceof ServiceError)) {
    return {
      status: 500,
      body: {
        title: TITLES[500]!,
        status: 500,
        detail: 'Something failed on our side. The BT-TRACE-ID of this answer finds it in the log.',
      },
    }
  }
  const refusal: Refusal = REFUSALS[error.code]
  const { status } = refusal
  const text = (readOnly ? refusal.detailOfReads : undefined) ?? refusal.detail
  const { named, advice } = error
  const sentence = named.length === 0 ? text : `${text.slice(0, -1)}: ${named.join(', ')}.`
  const detail = advice === null ? sentence : `${sentence} ${advice}`
  const body: JsonObject = { title: TITLES[status]!, status, detail, code: error.code }
  const errors = Object.fromEntries(
    Object.entries(error.errors ?? {}).map(([path, messages]) => [path, [...messages]]),
  )
  if (status === 400) return { status, body: { errors, ...body, title: VALIDATION_TITLE } }
  return { status, body: error.errors === undefined ? body : { errors, ...body } }
}

/**
 * Like renderError(), for forwarded requests: in a member of its own, so that it is not mistaken for the destination's response,
 * and always with `errors`, because clients iterate over it. An error of the store comes before anything is sent, as for a read.
 *
 * Source: interface.md, Proxy, errors.
 */
export function renderProxyError(error: unknown): { status: number; body: JsonObject } {
  const { status, body } = renderError(error, { readOnly: true })
  return { status, body: { proxy_error: { errors: {}, ...body, title: PROXY_TITLE } } }
}

const PROXY_TITLE = 'Invalid proxy request'

/** Returns the refusal for an error that is one in other words: of the HTTP framework, or a damaged tenant key; null for any other. */
export function refusalOf(error: unknown): ServiceError | null {
  return error instanceof UnreadableValue ? unreadable(error) : refusalOfFramework(error)
}

function unreadable(cause: UnreadableValue): ServiceError {
  return new ServiceError('value_unreadable', undefined, { cause })
}

/**
 * Returns the refusal for an error of the HTTP framework itself (a body over the limit, a wrong content length), or null for any
 * other error.
 */
function refusalOfFramework(error: unknown): ServiceError | null {
  const status = (error as { statusCode?: unknown } | null | undefined)?.statusCode
  if (error instanceof ServiceError || typeof status !== 'number') return null
  const options = { cause: error }
  if (status === 413) return new ServiceError('body_too_large', undefined, options)
  if (status === 415) return new ServiceError('content_type_unsupported', undefined, options)
  if (status === 408) return new ServiceError('request_timeout', undefined, options)
  if (status === 404) return new ServiceError('route_not_found', undefined, options)
  if (status >= 400 && status < 500) {
    return new ServiceError('body_invalid', { error: ['The request is not well-formed.'] }, options)
  }
  return null
}

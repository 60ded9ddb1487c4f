import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Answer } from './endpoint.ts'
import type { Json } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { refusalOfFramework, renderError, renderProxyError } from './render-error.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends what an operation answers. */
export function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status)
  if (answer.headers !== undefined) reply.headers(answer.headers)
  if (answer.location !== undefined) reply.header('location', absolute(reply, answer.location))
  const { text = textOf(answer.body) } = answer
  if (text === undefined) return reply.header('content-length', '0').send()
  if (answer.headers?.['content-type'] === undefined) reply.header('content-type', JSON_TYPE)
  return reply.send(text)
}

/** Sends what is said of `error`: where requests are passed on, as an error of the proxy's own. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  passage: boolean,
): FastifyReply {
  const refusal = refusalOfFramework(error) ?? error
  const { status, body } = passage ? renderProxyError(refusal) : renderError(refusal)
  if (refusal instanceof ServiceError) request.refusal = refusal
  const expected = refusal instanceof ServiceError && refusal.ofCaller
  // What the operator must see is a fault, or a refusal that some failure caused (an unavailable store).
  if (status >= 500 && !expected) request.fault = error ?? new Error('Something threw nothing')
  if (status === 503 && refusal instanceof ServiceError) {
    reply.header('retry-after', String(refusal.retryAfterS))
  }
  // The rest of a body that was not read cannot be told from the next request.
  if (status === 413 || status === 431 || status === 408) reply.header('connection', 'close')
  return reply.code(status).header('content-type', JSON_TYPE).send(JSON.stringify(body))
}

function textOf(body: Json | undefined): string | undefined {
  return body === undefined ? undefined : JSON.stringify(body)
}

function absolute({ request }: FastifyReply, path: string): string {
  const host = request.headers.host
  return host === undefined ? path : `${request.protocol}://${host}${path}`
}

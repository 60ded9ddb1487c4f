import type { FastifyRequest } from 'fastify'
import type { Json } from '../../base/json.ts'
import { LARGE_BYTES_MIN } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { parseStrictJson } from '../../base/strict-json.ts'
import type { Endpoint } from '../endpoint.ts'
import type { PipelineState } from '../pipeline-state.ts'
import { checkContentEncoding, checkContentType, isBodiless } from '../format/request-headers.ts'
import { wholeBody } from './whole-body.ts'

/** Refuses a body that the endpoint cannot read by its headers, before any of it is read. */
export function checkBodyHeaders({ body: spec }: Endpoint, { headers }: FastifyRequest): void {
  if (spec === undefined) return
  const empty = isBodiless(headers)
  if (!empty) checkContentEncoding(headers['content-encoding'])
  checkContentType(spec.contentType, headers['content-type'], empty)
}

/** Reads the body whole. One that the endpoint does not use is discarded as it comes, not buffered. */
export function readBody(state: PipelineState): Promise<void> | undefined {
  const { endpoint, request } = state
  if (endpoint.body === undefined) {
    request.raw.resume()
    return undefined
  }
  const { principal } = request
  const bytes = wholeBody(request.raw, principal, (most) => state.quota.reserveBody(most))
  if (!(bytes instanceof Promise)) {
    state.bytes = bytes
    return undefined
  }
  state.bodyCameLater = true
  return bytes.then((whole) => void (state.bytes = whole))
}

/** Parses the body. Yields after a long one: that blocked the event loop, and the use case may block it as long again. */
export function parseBytes(state: PipelineState): Promise<void> | undefined {
  const { bytes, endpoint, options } = state
  state.body = parseJson(bytes, endpoint)
  return bytes.length >= LARGE_BYTES_MIN ? options.world.clock.yield() : undefined
}

function parseJson(bytes: Buffer, { body: spec }: Endpoint): Json | undefined {
  if (bytes.length > 0) return parseStrictJson(bytes)
  if (spec === undefined || spec.optional === true) return undefined
  throw new ServiceError('body_missing')
}

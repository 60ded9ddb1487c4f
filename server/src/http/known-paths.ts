import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../base/service-error.ts'
import { isStreaming, type StreamingEndpoint } from './streaming-endpoint.ts'
import type { Endpoint } from './endpoint.ts'

/** A path there is, and by which methods. */
export interface KnownPath {
  readonly pattern: RegExp
  readonly methods: string[]
  /** Whether requests are forwarded, there and below. */
  readonly streaming: boolean
}

/** Says that there is nothing at a path, or nothing by this method, and then by which there is. */
export function refusalOfRoute(
  paths: readonly KnownPath[],
  request: FastifyRequest,
  reply: FastifyReply,
): ServiceError {
  const known = findPath(paths, request)
  if (known === undefined) return new ServiceError('route_not_found')
  // RFC 9110, section 15.5.6: a 405 says what is allowed.
  reply.raw.setHeader('allow', known.methods.join(', '))
  return new ServiceError('method_not_allowed')
}

export function findPath(
  paths: readonly KnownPath[],
  { url }: FastifyRequest,
): KnownPath | undefined {
  // The router, too, takes a `#` for the end of the path.
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0]!
  return paths.find((it) => it.pattern.test(path))
}

export function knownPaths(endpoints: readonly (Endpoint | StreamingEndpoint)[]): KnownPath[] {
  const known = new Map<string, KnownPath>()
  for (const endpoint of endpoints) {
    const { method, path } = endpoint
    const streaming = isStreaming(endpoint)
    const escaped = path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/gi, '[^/]+')
    const pattern = new RegExp(streaming ? `^${escaped}(?:/.*)?$` : `^${escaped}/?$`)
    const entry = known.get(path) ?? { pattern, methods: [], streaming }
    entry.methods.push(method)
    known.set(path, entry)
  }
  // A path that is written out comes before one that it would fit as well.
  return [...known]
    .sort(([a], [b]) => Number(a.includes(':')) - Number(b.includes(':')))
    .map(([, it]) => it)
}

import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../base/service-error.ts'
import { isStreaming, type StreamingEndpoint } from './streaming/streaming-endpoint.ts'
import { methodsOf, type Endpoint } from './endpoint.ts'

/** A path that exists, and its methods. */
export interface KnownPath {
  readonly pattern: RegExp
  readonly methods: string[]
  /** Whether requests are forwarded, at this path and below. */
  readonly streaming: boolean
}

/** Refuses a path that does not exist, or a method it does not have; the latter names the allowed methods. */
export function refusalOfRoute(
  paths: readonly KnownPath[],
  request: FastifyRequest,
  reply: FastifyReply,
): ServiceError {
  const known = findPath(paths, request)
  if (known === undefined) return new ServiceError('route_not_found')
  // RFC 9110, section 15.5.6: a 405 names the allowed methods.
  reply.raw.setHeader('allow', known.methods.join(', '))
  return new ServiceError('method_not_allowed')
}

/** A literal path and a pattern may both match, as at `/tokens/search`: then the methods of each are served. */
export function findPath(
  paths: readonly KnownPath[],
  { url }: FastifyRequest,
): KnownPath | undefined {
  // The router also ends the path at a `#`.
  const path = url.split(/[?#]/, 1)[0]!
  const [first, ...others] = paths.filter((it) => it.pattern.test(path))
  if (first === undefined || others.length === 0) return first
  const methods = new Set([first, ...others].flatMap((it) => it.methods))
  return { ...first, methods: [...methods] }
}

export function knownPaths(endpoints: readonly (Endpoint | StreamingEndpoint)[]): KnownPath[] {
  const known = new Map<string, KnownPath>()
  for (const endpoint of endpoints) {
    const { path } = endpoint
    const streaming = isStreaming(endpoint)
    const escaped = path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/gi, '[^/]+')
    const pattern = new RegExp(streaming ? `^${escaped}(?:/.*)?$` : `^${escaped}/?$`)
    const entry = known.get(path) ?? { pattern, methods: [], streaming }
    entry.methods.push(...(isStreaming(endpoint) ? [endpoint.method] : methodsOf(endpoint)))
    known.set(path, entry)
  }
  // A literal path comes before a pattern that matches it too.
  return [...known]
    .sort(([a], [b]) => Number(a.includes(':')) - Number(b.includes(':')))
    .map(([, it]) => it)
}

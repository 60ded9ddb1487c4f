import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../base/access.ts'
import { ORIGIN_CHARS_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { isOwnOrigin, type PublicAddress } from '../format/public-address.ts'

/** Who used a key from which page: the cause of `origin_not_allowed`, for the log. The request has no principal then. */
export class RefusedOrigin {
  readonly principal: Principal
  /** Printable, and no longer than an origin may be: the caller chose it. */
  readonly origin: string

  constructor(principal: Principal, origin: string) {
    this.principal = principal
    this.origin = origin.slice(0, ORIGIN_CHARS_MAX).replaceAll(/[^\x20-\x7e]/g, '?')
  }
}

/**
 * Refuses a page that may not use the key it has. Throws `origin_not_allowed`.
 *
 * Only browsers say truthfully where a request comes from. Other clients send no origin, or any they like, and are not stopped.
 */
export function checkOrigin(
  { headers, raw }: FastifyRequest,
  principal: Principal,
  address: Pick<PublicAddress, 'url' | 'fieldsUrl'>,
): void {
  const { allowedOrigins } = principal
  const { origin } = headers
  if (allowedOrigins === null || origin === undefined) return
  if (allowedOrigins.includes(origin) || isOwnOrigin(origin, raw, address)) return
  const cause = new RefusedOrigin(principal, origin)
  const advice = headers.host !== undefined && hostOf(origin) === headers.host ? OWN_PAGE : null
  throw new ServiceError('origin_not_allowed', undefined, { cause, advice })
}

/** For an operator who has card fields served: the page may be our own, under a name that no setting tells. */
const OWN_PAGE =
  'If the page is card fields of this service, set SYMBOLON_PUBLIC_URL or SYMBOLON_FIELDS_URL to its origin.'

function hostOf(origin: string): string {
  return origin.replace(/^https?:\/\//, '')
}

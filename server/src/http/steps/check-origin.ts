import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../base/access.ts'
import { ServiceError } from '../../base/service-error.ts'
import { ownOrigin, type PublicAddress } from '../format/public-address.ts'

/**
 * Refuses a page that may not use the key it has. Throws `origin_not_allowed`.
 *
 * Only browsers say truthfully where a request comes from. Other clients send no origin, or any they like, and are not stopped.
 */
export function checkOrigin(
  { headers, raw }: FastifyRequest,
  { allowedOrigins }: Pick<Principal, 'allowedOrigins'>,
  address: Pick<PublicAddress, 'url'>,
): void {
  const { origin } = headers
  if (allowedOrigins === null || origin === undefined) return
  if (allowedOrigins.includes(origin) || origin === ownOrigin(raw, address)) return
  throw new ServiceError('origin_not_allowed')
}

import type { RequestContext } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import type { StoredToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { ReadBudget } from './read-budget.ts'

/**
 * Returns the token `id` as the request sees it: within its transaction, if it has one.
 *
 * Throws `token_not_found` if it is absent, expired or another tenant's, and `tenant_busy`.
 */
export async function findLive(
  { store }: Pick<World, 'store'>,
  context: RequestContext,
  id: string,
  now: number,
): Promise<StoredToken> {
  const { tenantId, transactionId } = context
  const [token] = await new ReadBudget(context).read((bytesMax) =>
    store.tokens.find(tenantId, [id], transactionId, bytesMax),
  )
  if (token !== undefined && (token.expiresAt === null || token.expiresAt > now)) return token
  throw new ServiceError('token_not_found')
}

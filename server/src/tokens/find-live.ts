import { authorize, type Grant } from '../access/authorize.ts'
import type { Permission } from '../base/access.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { ReadBudget } from './read-budget.ts'
import { readGranted } from './read-granted.ts'

/**
 * Returns the token `id` as the request sees it: within its transaction, if it has one. Long data is not read.
 *
 * Throws `token_not_found` if it is absent, expired or another tenant's.
 */
export async function findLive(
  { store }: Pick<World, 'store'>,
  { tenantId, transactionId }: RequestContext,
  id: string,
  now: number,
): Promise<FoundToken> {
  const [token] = await store.tokens.lookUp(tenantId, [id], transactionId)
  if (token !== undefined && isLive(token, now)) return token
  throw new ServiceError('token_not_found')
}

export function isLive({ expiresAt }: FoundToken, now: number): boolean {
  return expiresAt === null || expiresAt > now
}

/**
 * Returns the token that findLive() finds, and the grant of `permission` for it. It has its data if the grant shows any, or
 * `always`.
 *
 * Throws what findLive() throws, `permission_missing` and `tenant_busy`.
 */
export async function readLive(
  world: Pick<World, 'store'>,
  context: RequestContext,
  id: string,
  {
    permission,
    now,
    always = false,
  }: { readonly permission: Permission; readonly now: number; readonly always?: boolean },
): Promise<{ readonly token: FoundToken; readonly grant: Grant }> {
  const { tokens, grants } = await readGranted(world, context, {
    find: async () => ({ tokens: [await findLive(world, context, id, now)] }),
    authorize: (found) => found.map((it) => authorize(context, permission, it)),
    budget: new ReadBudget(context),
    always,
  })
  return { token: tokens[0]!, grant: grants[0]! }
}

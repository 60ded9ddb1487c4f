import { authorize } from '../access/authorize.ts'
import { commit } from '../request/commit.ts'
import type { RequestContext } from '../request/context.ts'
import { ServiceError } from '../base/service-error.ts'
import { noContent, type Answer } from '../request/response.ts'
import type { World } from '../ports/world.ts'
import { findLive } from './find-live.ts'
import { UPDATE_ATTEMPTS_MAX } from './update-token.ts'

/**
 * Deletes the token `id` permanently.
 *
 * Only the authorized version is deleted: if the token changed in the meantime, perhaps its containers too, authorization
 * is repeated. Throws `token_not_found`, `permission_missing`, `token_busy`, and what commit() throws.
 */
export async function deleteToken(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  context: RequestContext,
  id: string,
): Promise<Answer> {
  for (let attempt = 1; attempt <= UPDATE_ATTEMPTS_MAX; attempt++) {
    const now = world.clock.now()
    const token = await findLive(world, context, id, now)
    authorize(context, 'token:delete', token)
    const conflict = await commit(world, context, [{ kind: 'delete-token', token, now }])
    if (conflict === null) return noContent()
    if (conflict.kind !== 'token-changed') {
      throw new Error(`Cannot delete a token: the store answered ${conflict.kind}`)
    }
  }
  throw new ServiceError('token_busy')
}

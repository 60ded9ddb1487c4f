import type { RequestContext } from '../../request/context.ts'
import { idOf } from '../../base/id.ts'
import { SESSION_LIFETIME_MS } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import { sessionStatement } from '../../ports/access-state.ts'
import type { World } from '../../ports/world.ts'
import { hashApiKey, makeApiKey, makeSecret } from '../api-key.ts'
import { commit } from '../../request/commit.ts'
import { renderSession } from './wire.ts'

/**
 * Opens a session of the caller's application: a key without rights, and a nonce by which a private application can grant it
 * some. It ends with the key that opened it.
 *
 * Both are shown here and kept as hashes only. The answer is not remembered for an idempotency key: many clients share the key of
 * a public application, and perhaps an idempotency key.
 *
 * Throws `key_type_unfit` for an ephemeral key, `key_unknown` if the caller's key is gone by now, and what commit() throws.
 */
export async function openSession(
  world: Pick<World, 'clock' | 'keyring' | 'random' | 'store'>,
  context: RequestContext,
): Promise<Answer> {
  if (context.ephemeral === true) throw new ServiceError('key_type_unfit')
  const now = world.clock.now()
  const [key, nonce] = [makeApiKey('session', world.random), makeSecret(world.random)]
  const expiresAt = now + SESSION_LIFETIME_MS
  const keys = await world.keyring.open(context.tenantId)
  const opened = {
    id: idOf(now, world.random.bytes(10)),
    applicationId: context.applicationId,
    keyId: context.keyId,
    hash: hashApiKey(key),
    nonceHash: hashApiKey(nonce),
    createdAt: now,
    expiresAt,
    authorization: null,
  }
  const proof = keys.attest(sessionStatement(context.tenantId, opened))
  const session = { ...opened, proof }
  const conflict = await commit(world, context, [
    { kind: 'insert', entity: 'session', row: session },
  ])
  if (conflict !== null) throw new ServiceError('key_unknown')
  return { status: 201, body: renderSession(key, nonce, expiresAt) }
}

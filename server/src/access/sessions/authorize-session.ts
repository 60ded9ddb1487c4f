import type { Rights } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json } from '../../base/json.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import { sessionStatement } from '../../ports/access-state.ts'
import type { StoredSession } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { hashApiKey } from '../api-key.ts'
import { commit } from '../../request/commit.ts'
import { isAsWritten } from '../is-as-written.ts'
import { excessOf } from './excess.ts'
import { parseAuthorizeSession } from './wire.ts'

/**
 * Grants a session of the caller's tenant its rights, once. The session has them from its next request on, until the caller's key
 * is deleted, and never more of them than the caller's application has at the time.
 *
 * Throws `key_type_unfit` for an ephemeral key, `body_invalid`, `session_not_found` (never opened, expired, or another tenant's),
 * `rights_exceeded`, `session_authorized`, and what commit() throws.
 *
 * Source: interface.md, Sessions.
 */
export async function authorizeSession(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  context: RequestContext,
  body: Json | undefined,
): Promise<Answer> {
  if (context.ephemeral === true) throw new ServiceError('key_type_unfit')
  const now = world.clock.now()
  const { nonce, rights, expiresAt } = parseAuthorizeSession(body, now)
  const session = await getSession(world, context, nonce)
  refuseExcess(context, rights)
  if (session.authorization !== null) throw new ServiceError('session_authorized')
  const { permissions, rules } = rights
  const { applicationId, keyId } = context
  const granted = {
    authorization: { permissions, rules, applicationId, keyId },
    expiresAt: expiresAt ?? session.expiresAt,
  }
  const keys = await world.keyring.open(context.tenantId)
  const proof = keys.attest(sessionStatement(context.tenantId, { ...session, ...granted }))
  const change = { kind: 'authorize-session', id: session.id, ...granted, proof, now } as const
  const answer = { status: 200 }
  const conflict = await commit(world, context, [change], answer)
  if (conflict === null) return answer
  // A concurrent request authorized it, or it expired: getSession() tells which.
  await getSession(world, context, nonce)
  throw new ServiceError('session_authorized')
}

async function getSession(
  world: Pick<World, 'clock' | 'keyring' | 'log' | 'store'>,
  { tenantId }: RequestContext,
  nonce: string,
): Promise<StoredSession> {
  const hash = hashApiKey(nonce)
  const session = await world.store.sessions.findByNonce(tenantId, hash, world.clock.now())
  if (session === null || !(await isAsWritten(world, tenantId, session))) {
    throw new ServiceError('session_not_found')
  }
  return session
}

/** Decides, and records, permission by permission. */
function refuseExcess(context: RequestContext, rights: Rights): void {
  const excess = excessOf(rights, context)
  const given = new Set([rights.permissions, ...rights.rules.map((it) => it.permissions)].flat())
  for (const permission of given) {
    const allowed = !excess.includes(permission)
    context.decisions.push({ permission, containers: [], allowed, by: [] })
  }
  if (excess.length > 0) throw new ServiceError('rights_exceeded')
}

import { isDeepStrictEqual } from 'node:util'
import { authorize } from '../../access/authorize.ts'
import { findApplication } from '../../access/applications/get-application.ts'
import { keepUntil } from '../../request/idempotency.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json } from '../../base/json.ts'
import { REACTOR_TOKENS_MAX } from '../../base/limits.ts'
import { ServiceError } from '../../base/service-error.ts'
import { fillTokenReferences, type Filled } from '../../tokens/fill-token-references.ts'
import { findTokenReferences } from '../../tokens/token-references.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import { RunnerBusy, RunnerUnavailable } from '../../ports/reactor-runner.ts'
import type { StoredReactor } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { getReactor, openReactor } from '../get-reactor.ts'
import type { OpenReactor } from '../wire.ts'
import { refuseWithoutApplication } from './acting.ts'

/** An invocation that is ready to run. */
export interface PreparedInvocation {
  readonly opened: OpenReactor
  readonly filled: Filled
}

/**
 * Returns the reactor if the caller may invoke it.
 *
 * Throws `reactor_not_found`, `permission_missing`.
 */
export async function authorizeReactorInvocation(
  world: Pick<World, 'store'>,
  context: RequestContext,
  id: string,
): Promise<StoredReactor> {
  const reactor = await getReactor(world, context, id)
  authorize(context, 'reactor:invoke', { id, internalId: reactor.id, containers: [] })
  return reactor
}

/**
 * Throws `reactors_busy` if too many runs of the tenant are active or waiting. Checked before anything is opened or
 * recorded, so that a flood of requests is cheap to refuse; the check is repeated when the code starts.
 */
export function refuseWithoutCapacity({ runner }: Pick<World, 'runner'>, tenantId: string): void {
  if (!runner.hasCapacity(tenantId)) throw new ServiceError('reactors_busy')
}

/**
 * Returns the code and its input: the arguments, with what the caller may use of the tokens in them.
 *
 * Throws `reactor_application_gone`, `reactors_unavailable` if nothing can be run, and what findTokenReferences() and
 * fillTokenReferences() throw.
 */
export async function prepareInvocation(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store' | 'runner'>,
  context: RequestContext,
  reactor: StoredReactor,
  args: Json,
  { privacyShown }: TokenSettings,
): Promise<PreparedInvocation> {
  const references = findTokenReferences({ args })
  const opened = await openReactor(world, context, reactor)
  refuseWithoutApplication(opened)
  if (world.runner.level === null) throw unavailable(new RunnerUnavailable(NO_SANDBOX))
  const filled = await fillTokenReferences(world, context, references, {
    permission: 'reactor:invoke',
    tokensMax: REACTOR_TOKENS_MAX,
    privacyShown,
  })
  // The runner has its own limits.
  context.quota?.().releaseLargeRead(0)
  return { opened, filled }
}

/**
 * Checks the reactor again when a run that waited is about to begin.
 *
 * Throws `reactor_not_found` and `reactor_application_gone` as a new request would. Throws `reactors_busy` if the reactor or the
 * destinations of its application have changed: a repetition runs it as it is now.
 */
export async function requireSameReactor(
  world: Pick<World, 'clock' | 'store'>,
  context: RequestContext,
  { reactor, config, application }: OpenReactor,
): Promise<void> {
  const { applicationId } = config
  const [current, acting] = await Promise.all([
    getReactor(world, context, reactor.id),
    applicationId === null ? null : findApplication(world, context.tenantId, applicationId),
  ])
  refuseWithoutApplication({ reactor, config, application: acting })
  const isSame = isDeepStrictEqual(acting?.destinations, application?.destinations)
  if (current.revision !== reactor.revision || !isSame) throw new ServiceError('reactors_busy')
}

/** The cause is for the operator's log, except when a tenant asks for too much: that is not the operator's to fix. */
export function unavailable(cause: RunnerUnavailable): ServiceError {
  if (cause instanceof RunnerBusy) return new ServiceError('reactors_busy')
  return new ServiceError('reactors_unavailable', undefined, { cause })
}

/** A result is kept no longer than the tokens in its arguments, and than the security codes of these. */
export function keepWhileTokensLive(context: RequestContext, { tokens }: Filled): void {
  for (const { cvc, expiresAt } of tokens) keepUntil(context, expiresAt, cvc?.expiresAt ?? null)
}

const NO_SANDBOX = 'The sandbox is not available, so no reactor runs'

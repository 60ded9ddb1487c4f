import { commit } from '../../request/commit.ts'
import type { EphemeralKeys } from '../../access/ephemeral-keys.ts'
import type { RequestContext } from '../../request/context.ts'
import { requireSameRights } from '../../request/present-rights.ts'
import type { Json } from '../../base/json.ts'
import { REACTOR_TIMEOUT_MS } from '../../base/limits.ts'
import type { Answer } from '../../request/response.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import type { World } from '../../ports/world.ts'
import { acceptWithCallback } from '../jobs/accept-invocation.ts'
import type { JobStorage } from '../jobs/job-storage.ts'
import type { ResponseHeaderSettings } from '../../base/guarded-headers.ts'
import {
  authorizeReactorInvocation,
  keepWhileTokensLive,
  prepareInvocation,
  refuseWithoutCapacity,
} from './prepare-invocation.ts'
import { answerWithResult, runReactor } from './run-reactor.ts'
import { parseReact } from './wire.ts'

export interface ReactOptions {
  readonly id: string
  readonly body: Json | undefined
  readonly ephemeralKeys: EphemeralKeys
  readonly responseHeaders: ResponseHeaderSettings
  readonly settings: TokenSettings
  readonly storage: JobStorage
}

/**
 * Runs a reactor with what the caller may use of the tokens in its arguments, and answers with its result: `raw`
 * unchanged, and the tokens of `tokenize`. With a callback, the invocation is accepted and runs after the answer.
 *
 * Every decision and every use is in the audit log before the code starts. An error thrown by the code is an answer, too,
 * with its input redacted.
 *
 * Throws `reactor_not_found`, `permission_missing`, `body_invalid`, `reactor_application_gone`, `reactors_busy`,
 * `reactors_unavailable`, what prepareInvocation(), acceptWithCallback() and commit() throw, and for the result what tokenize()
 * throws.
 * Source: interface.md, Reactors.
 */
export async function react(
  world: Pick<World, 'clock' | 'log' | 'random' | 'keyring' | 'store' | 'egress' | 'runner'>,
  context: RequestContext,
  { id, body, ephemeralKeys, responseHeaders, settings, storage }: ReactOptions,
): Promise<Answer> {
  const reactor = await authorizeReactorInvocation(world, context, id)
  const asked = parseReact(body, context.plan)
  if (asked.callbackUrl !== null) {
    const accepting = { tokens: settings, storage }
    return await acceptWithCallback(world, context, reactor, asked, asked.callbackUrl, accepting)
  }
  refuseWithoutCapacity(world, context.tenantId)
  const prepared = await prepareInvocation(world, context, reactor, asked.args, settings)
  // Tokens of the result are committed for another principal, whose rights are not the caller's.
  keepWhileTokensLive(context, prepared.filled)
  await commit(world, context, [])
  const outcome = await runReactor(world, context, prepared, {
    requireSameRights: () => requireSameRights(context),
    ephemeralKeys,
    timeoutMs: REACTOR_TIMEOUT_MS,
    responseHeaders,
  })
  return (
    outcome.answer ??
    (await answerWithResult(world, context, prepared.opened, outcome.result, settings))
  )
}

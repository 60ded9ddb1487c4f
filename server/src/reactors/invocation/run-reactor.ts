import { commit } from '../../request/commit.ts'
import { commonDestinations } from '../../access/destinations.ts'
import { revealConfiguration } from '../../definitions/secret-configuration.ts'
import type { EphemeralKeys } from '../../access/ephemeral-keys.ts'
import type { RequestContext } from '../../request/context.ts'
import type { JsonObject } from '../../base/json.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { Answer } from '../../request/response.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import { tokenize } from '../../tokens/tokenize.ts'
import { RunnerUnavailable, type SandboxRun } from '../../ports/reactor-runner.ts'
import { isStoreOutage } from '../../ports/store-outage.ts'
import type { World } from '../../ports/world.ts'
import type { OpenReactor } from '../wire.ts'
import { issueEphemeralKey, tokenCreatorContext } from './acting.ts'
import type { ResponseHeaderSettings } from '../../base/guarded-headers.ts'
import { requireSameReactor, unavailable, type PreparedInvocation } from './prepare-invocation.ts'
import { answerWithRaw, type Result } from './result.ts'
import { interpretOutcome, type InterpretedOutcome } from './interpret-outcome.ts'
import { renderLoggedFailure } from './wire.ts'

interface RunSettings {
  /** Called when a run that waited is about to begin. Throws or rejects if its initiator has other rights now. */
  readonly requireSameRights: () => Promise<void> | undefined
  readonly ephemeralKeys: EphemeralKeys
  readonly timeoutMs: number
  readonly responseHeaders: ResponseHeaderSettings
}

/**
 * Runs the code. A failure of the code is logged without its texts, which may hold what it was given.
 *
 * Throws `reactors_busy` or `reactors_unavailable` if it could not start; and after a wait, unstarted, what requireSameReactor()
 * and `requireSameRights` throw.
 */
export async function runReactor(
  world: Pick<World, 'clock' | 'log' | 'random' | 'runner' | 'store'>,
  context: RequestContext,
  { opened, filled }: PreparedInvocation,
  { requireSameRights, ephemeralKeys, timeoutMs, responseHeaders }: RunSettings,
): Promise<InterpretedOutcome> {
  const { code } = opened.config
  const configuration = revealConfiguration(opened.config).reveal()
  const ephemeralKey = issueEphemeralKey(world, context, opened, ephemeralKeys)
  const sandboxRun: SandboxRun = {
    tenantId: context.tenantId,
    reactorId: opened.reactor.id,
    version: String(opened.reactor.revision),
    code,
    args: new Sensitive(JSON.stringify((filled.payload as JsonObject)['args'])),
    configuration: new Sensitive(JSON.stringify(configuration)),
    apiKey: ephemeralKey?.key ?? null,
    destinations: allowedDestinationsOfCode(context, opened),
    timeoutMs,
  }
  try {
    const outcome = await world.runner.run(sandboxRun, async () => {
      await requireSameRights()
      await requireSameReactor(world, context, opened)
    })
    const key = ephemeralKey === null ? [] : [ephemeralKey.key.reveal()]
    const secrets = () => [...filled.shown, ...Object.values(configuration), ...key]
    const interpreted = interpretOutcome(outcome, { timeoutMs, responseHeaders }, secrets)
    if (interpreted.failure !== null) {
      const fields = renderLoggedFailure(context, opened.reactor.id, interpreted.failure)
      world.log.info('reactor_failed', fields)
    }
    return interpreted
  } catch (cause) {
    throw cause instanceof RunnerUnavailable ? unavailable(cause) : cause
  } finally {
    ephemeralKey?.end()
  }
}

/**
 * Returns the destinations allowed to both the initiator and the application of the code, because the code holds data of
 * both.
 */
function allowedDestinationsOfCode(
  context: RequestContext,
  { application }: OpenReactor,
): readonly string[] | null {
  return commonDestinations(context.destinations, application?.destinations ?? null)
}

/**
 * Creates the tokens requested by the code and answers; `answered` receives the answer before it is committed together
 * with them. Throws what tokenCreatorContext() and tokenize() throw.
 */
export async function answerWithResult(
  world: Pick<World, 'clock' | 'random' | 'keyring' | 'store'>,
  context: RequestContext,
  opened: OpenReactor,
  { raw, tokenize: payload }: Result,
  settings: TokenSettings,
  answered: (answer: Answer) => void = () => {},
): Promise<Answer> {
  if (payload === null) return answerWithRaw({}, raw)
  const creator = await tokenCreatorContext(world, context, opened)
  try {
    return await tokenize(world, creator, payload, settings, (tokens) => {
      const answer = answerWithRaw({ tokens }, raw)
      answered(answer)
      return answer
    })
  } catch (error) {
    // The refusal concerns the creator of the tokens, not the context that is answered, so it must be recorded here.
    if (!isStoreOutage(error) && creator.recorded < creator.decisions.length)
      await commit(world, creator, [])
    throw error
  }
}

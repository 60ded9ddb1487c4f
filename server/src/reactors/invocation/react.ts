import { authorize } from '../../access/authorize.ts'
import { commit } from '../../access/commit.ts'
import { commonDestinations } from '../../access/destinations.ts'
import type { LentKeys } from '../../access/lent-keys.ts'
import type { Caller } from '../../base/access.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { REACTOR_TIMEOUT_MS, REACTOR_TOKENS_MAX } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { ServiceError } from '../../base/service-error.ts'
import { ok, type Answer } from '../../http/endpoint.ts'
import { fillMentions, type Filled } from '../../tokens/fill-mentions.ts'
import { findMentions } from '../../tokens/mentions.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import { tokenize } from '../../tokens/tokenize.ts'
import { RunnerUnavailable } from '../../world/reactor-runner.ts'
import type { World } from '../../world/world.ts'
import { getReactor, openReactor } from '../get-reactor.ts'
import type { OpenReactor } from '../wire.ts'
import { lendKey, makerOf, refuseWithoutApplication } from './acting.ts'
import type { Result } from './result.ts'
import { tell, type Told } from './tell.ts'
import { parseReact } from './wire.ts'

type Reach = Pick<World, 'clock' | 'random' | 'keyring' | 'store' | 'runner'>

export interface Invocation {
  readonly id: string
  readonly body: Json | undefined
  readonly lentKeys: LentKeys
  readonly settings: TokenSettings
}

/**
 * Runs a reactor with what the caller may use of the tokens in its arguments, and answers with what it returned: `raw`
 * as it is, and the tokens of `tokenize`.
 *
 * Every decision and every use is in the record before the code is begun. What the code throws is an answer, too, but
 * for what was put into it, which is taken out of its words.
 *
 * Throws `reactor_not_found`, `permission_missing`, `body_invalid`, `reactor_application_gone`, `reactors_unavailable`,
 * what findMentions(), fillMentions() and commit() throw, and of what was returned what tokenize() throws.
 * Source: interface.md, Reactors.
 */
export async function react(
  world: Reach,
  caller: Caller,
  { id, body, lentKeys, settings }: Invocation,
): Promise<Answer> {
  const reactor = await getReactor(world, caller, id)
  authorize(caller, 'reactor:invoke', { id, serial: reactor.id, containers: [] })
  const mentions = findMentions({ args: parseReact(body) })
  const opened = await openReactor(world, caller, reactor)
  refuseWithoutApplication(opened)
  if (world.runner.level === null) throw unavailable(new RunnerUnavailable(NO_WALLS))
  const filled = await fillMentions(world, caller, mentions, {
    permission: 'reactor:invoke',
    tokensMax: REACTOR_TOKENS_MAX,
    privacyShown: settings.privacyShown,
  })
  limitReplay(caller, filled)
  await commit(world, caller, [])
  const told = await run(world, caller, opened, filled, lentKeys)
  return told.answer ?? (await finish(world, caller, opened, told.result, settings))
}

async function run(
  world: Reach,
  caller: Caller,
  opened: OpenReactor,
  { payload, shown }: Filled,
  lentKeys: LentKeys,
): Promise<Told> {
  const { code, configuration } = opened.terms
  const lent = lendKey(world, caller, opened, lentKeys)
  const job = {
    tenantId: caller.tenantId,
    reactorId: opened.reactor.id,
    version: String(opened.reactor.revision),
    code,
    args: new Sensitive(JSON.stringify((payload as JsonObject)['args'])),
    configuration: new Sensitive(JSON.stringify(configuration)),
    apiKey: lent?.key ?? null,
    destinations: reachOfCode(caller, opened),
    timeoutMs: REACTOR_TIMEOUT_MS,
  }
  try {
    const outcome = await world.runner.run(job)
    const key = lent === null ? [] : [lent.key.reveal()]
    return tell(outcome, () => [...shown, ...Object.values(configuration), ...key])
  } catch (cause) {
    throw cause instanceof RunnerUnavailable ? unavailable(cause) : cause
  } finally {
    lent?.end()
  }
}

/** Where both whoever invokes and whom the code acts for may send: it holds what one and the other have. */
function reachOfCode(caller: Caller, { application }: OpenReactor): readonly string[] | null {
  return commonDestinations(caller.destinations, application?.destinations ?? null)
}

const NO_WALLS = 'There are no walls to run code behind: reactors are not run'

/** The cause is for the operator's log. */
function unavailable(cause: RunnerUnavailable): ServiceError {
  return new ServiceError('reactors_unavailable', undefined, { cause })
}

/** Makes the tokens that the code asked for, and answers. */
async function finish(
  world: Reach,
  caller: Caller,
  opened: OpenReactor,
  { raw, tokenize: payload }: Result,
  settings: TokenSettings,
): Promise<Answer> {
  const rest = raw === undefined ? {} : { raw }
  if (payload === undefined) return ok(rest)
  const maker = await makerOf(world, caller, opened)
  try {
    return await tokenize(world, maker, payload, settings, (tokens) => ok({ tokens, ...rest }))
  } catch (error) {
    const known = error instanceof ServiceError && error.code === 'store_unavailable'
    // Whoever is about to be answered is not who was refused.
    if (!known && maker.recorded < maker.decisions.length) await commit(world, maker, [])
    throw error
  }
}

/** What code makes of a security code may be kept no longer than that. */
function limitReplay({ replay }: Caller, { tokens }: Filled): void {
  if (replay === null) return
  const ends = tokens.flatMap(({ cvc }) => cvc?.expiresAt ?? [])
  if (ends.length > 0) replay.until = Math.min(...ends)
}

import { commit } from '../../request/commit.ts'
import { authorize } from '../../access/authorize.ts'
import { refusalOfEgress } from '../../request/egress-refusals.ts'
import type { RequestContext } from '../../request/context.ts'
import { idOf } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import { JOBS_MAX } from '../../base/limits.ts'
import { hostOf } from '../../base/absolute-url.ts'
import { ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import type { TokenSettings } from '../../tokens/token-settings.ts'
import { EgressFailure, EgressRefusal, senderOf } from '../../ports/egress.ts'
import type { StoredReactor } from '../../ports/stored.ts'
import type { World } from '../../ports/world.ts'
import { authorizeReactorInvocation, prepareInvocation } from '../invocation/prepare-invocation.ts'
import { parseReactAsync, type RequestedInvocation } from '../invocation/wire.ts'
import { initiatorOf } from './job-state.ts'
import type { JobStorage } from './job-storage.ts'
import { newJob } from './stages.ts'

export interface AcceptOptions {
  readonly tokens: TokenSettings
  readonly storage: JobStorage
}

type AcceptanceWorld = Pick<World, 'clock' | 'random' | 'keyring' | 'store' | 'egress' | 'runner'>

/**
 * Accepts an invocation whose result is sent to `callbackUrl`. All checks that can be made now are made, and once it
 * answers the job is on disk. Nothing is run yet.
 *
 * Throws `destination_refused`, `jobs_full`, `job_storage_full`, `key_type_unfit` for an ephemeral key, and what prepareInvocation() and commit() throw.
 * Source: interface.md, Reactors.
 */
export async function acceptWithCallback(
  world: AcceptanceWorld,
  context: RequestContext,
  reactor: StoredReactor,
  asked: RequestedInvocation,
  callbackUrl: URL,
  options: AcceptOptions,
): Promise<Answer> {
  await vetCallback(world, context, reactor, callbackUrl)
  return await accept(world, context, reactor, { ...asked, callbackUrl }, options, (id) => {
    return { status: 202, headers: { [REQUEST_ID]: id } }
  })
}

/**
 * Accepts an invocation whose result is fetched, and returns the id to fetch it by.
 *
 * Throws what acceptWithCallback() throws, and `body_invalid` for a callback. Source: interface.md, Reactors.
 */
export async function reactAsync(
  world: AcceptanceWorld,
  context: RequestContext,
  { id, body }: { readonly id: string; readonly body: Json | undefined },
  options: AcceptOptions,
): Promise<Answer> {
  const reactor = await authorizeReactorInvocation(world, context, id)
  const asked = parseReactAsync(body, context.plan)
  return await accept(world, context, reactor, asked, options, (requestId) => {
    return {
      status: 202,
      body: { asyncReactorRequestId: requestId },
      headers: { [REQUEST_ID]: requestId },
    }
  })
}

const REQUEST_ID = 'bt-reactor-request-id'

async function accept(
  world: AcceptanceWorld,
  context: RequestContext,
  reactor: StoredReactor,
  { args, timeoutMs, rerun, callbackUrl }: RequestedInvocation,
  { tokens, storage }: AcceptOptions,
  answerOf: (id: string) => Answer,
): Promise<Answer> {
  // The job would run after that key has ended.
  if (context.ephemeral === true) throw new ServiceError('key_type_unfit')
  if ((await world.store.jobs.unfinished(context.tenantId)) >= JOBS_MAX) {
    throw new ServiceError('jobs_full')
  }
  await storage.requireRoom(context.tenantId)
  // A dry run that reports invalid arguments now. The job keeps them as sent; its run fills them under the rights of that time.
  await prepareInvocation(world, context, reactor, structuredClone(args), tokens)
  const keys = await world.keyring.open(context.tenantId)
  const now = world.clock.now()
  const id = idOf(now, world.random.bytes(10))
  const job = newJob(
    keys,
    { id, reactorId: reactor.id, now },
    {
      traceId: context.traceId,
      initiator: initiatorOf(context),
      run: { args, timeoutMs, rerun },
      callbackUrl: callbackUrl?.href ?? null,
      resultUntil: null,
      failure: null,
      status: null,
    },
  )
  await storage.accept(context.tenantId, job)
  const answer = answerOf(id)
  const conflict = await commit(
    world,
    context,
    [{ kind: 'insert', entity: 'job', row: job }],
    answer,
  )
  if (conflict !== null) throw new Error(`Cannot accept an invocation: ${conflict.kind}`)
  return answer
}

/**
 * Refuses a destination that can never be allowed, and records where the result is meant to go. A name without an address
 * is accepted, because it may have one by then.
 */
async function vetCallback(
  { egress }: Pick<World, 'egress'>,
  context: RequestContext,
  { id }: StoredReactor,
  url: URL,
): Promise<void> {
  try {
    await egress.vet(senderOf(context.tenantId), url, context.destinations)
  } catch (error) {
    if (error instanceof EgressRefusal) {
      const refused = {
        containers: [],
        allowed: false,
        by: [],
        internalId: id,
        destination: hostOf(url),
      }
      context.decisions.push({ permission: 'reactor:invoke', ...refused })
      throw refusalOfEgress(error)
    }
    if (!(error instanceof EgressFailure)) throw error
  }
  authorize(context, 'reactor:invoke', { id, internalId: id, containers: [] }, hostOf(url))
}

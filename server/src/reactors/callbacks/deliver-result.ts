import { isUtf8 } from 'node:buffer'
import { CALLBACK_RETRIES, CALLBACK_SENDING_MS } from '../../base/limits.ts'
import type { Answer } from '../../request/response.ts'
import type { StoredJob } from '../../ports/jobs.ts'
import type { EntityChange } from '../../ports/store/entity-change.ts'
import type { World } from '../../ports/world.ts'
import { runtimeError } from '../invocation/thrown-error.ts'
import { renderFailure } from '../invocation/wire.ts'
import { allowedDestinationsOfResult } from '../jobs/job-initiator.ts'
import type { JobStorage } from '../jobs/job-storage.ts'
import { openJobState, openResult, type JobState } from '../jobs/job-state.ts'
import { deadLettered, replaced, retried } from '../jobs/stages.ts'
import { pauseAfter } from './schedule.ts'
import { callbackSecrets } from './secrets.ts'
import { sendCallback, type DeliveryOutcome } from './send-callback.ts'
import { publicSignatureOf, signatureOf } from './signature.ts'
import { renderFailedAttempt } from './wire.ts'

type DeliveryWorld = Pick<
  World,
  'clock' | 'log' | 'random' | 'keyring' | 'store' | 'egress' | 'canonicalJson'
>

export interface DeliveryOptions {
  readonly storage: JobStorage
  /** The name and version sent as the user agent. */
  readonly product: string
  /** The delay before the second attempt, in milliseconds. */
  readonly retryBaseMs: number
}

/**
 * Attempts once to deliver the result of a claimed job, and stores the outcome: the job is deleted if the receiver
 * acknowledged it, otherwise it is retried later or becomes a dead letter.
 */
export async function deliverResult(
  world: DeliveryWorld,
  tenantId: string,
  claimed: StoredJob,
  { product, retryBaseMs, storage }: DeliveryOptions,
): Promise<void> {
  const keys = await world.keyring.open(tenantId)
  const now = world.clock.now()
  let job = claimed
  let state = openJobState(keys, job)
  if (state.resultUntil !== null && state.resultUntil <= now) {
    job = replaced(keys, job, state, EXPIRED)
    state = { ...state, resultUntil: null }
    if (!(await put(world, tenantId, { kind: 'update', entity: 'job', row: job }))) return
  }
  const answer = openResult(keys, job)
  if (job.attempts > ATTEMPTS_MAX) {
    // The process that made the last attempt ended before it stored the outcome.
    const deadLetter = deadLettered(keys, job, { ...state, failure: 'interrupted' }, answer, now)
    await keepDeadLetter(world, tenantId, deadLetter, 'interrupted')
    return
  }
  const delivery = await deliveryOf(world, tenantId, job, state, answer, product)
  // Past this point another process may consider the claim lost, and both would send it.
  const late = world.clock.now() > job.dueAt - CALLBACK_SENDING_MS
  const outcome = late ? LATE : await sendCallback(world, tenantId, delivery)
  if (outcome.kind === 'acknowledged') {
    const deletion = { kind: 'delete', entity: 'job', id: job.id, revision: job.revision } as const
    if (await put(world, tenantId, deletion)) await storage.remove(tenantId, job)
    return
  }
  const { failure } = outcome
  const [chance] = world.random.bytes(1)
  const pause =
    outcome.kind === 'gone'
      ? null
      : pauseAfter(job.attempts, retryBaseMs, chance!, outcome.retryAfterMs)
  const at = world.clock.now()
  const newest = await world.keyring.open(tenantId)
  if (pause === null) {
    logFailure(world, tenantId, job, state, outcome, null)
    const deadLetter = deadLettered(newest, job, { ...state, failure }, answer, at)
    await keepDeadLetter(world, tenantId, deadLetter, failure)
    return
  }
  const later = retried(newest, job, { ...state, failure }, answer, at + pause)
  logFailure(world, tenantId, job, state, outcome, later.dueAt)
  await put(world, tenantId, { kind: 'update', entity: 'job', row: later })
}

/** Logs a failed attempt when it happens, not only once there is a dead letter: a receiver may be down for hours. */
function logFailure(
  { log }: Pick<World, 'log'>,
  tenantId: string,
  job: StoredJob,
  state: JobState,
  outcome: Exclude<DeliveryOutcome, { kind: 'acknowledged' }>,
  nextAt: number | null,
): void {
  const fields = renderFailedAttempt(tenantId, job, { ...state, failure: outcome.failure }, nextAt)
  log.warn('callback_failed', fields, outcome.kind === 'failed' ? outcome.error : undefined)
}

/** The first attempt, and one after each pause. */
const ATTEMPTS_MAX = CALLBACK_RETRIES + 1

const LATE: DeliveryOutcome = { kind: 'failed', failure: 'late', retryAfterMs: null }

const EXPIRED: Answer = renderFailure(
  runtimeError('The result is gone: a token or a security code that it was made from has expired.'),
  'reactor_result_expired',
  (it) => it,
)

async function deliveryOf(
  world: DeliveryWorld,
  tenantId: string,
  job: StoredJob,
  { callbackUrl, initiator, traceId }: JobState,
  answer: Answer,
  product: string,
) {
  const body = answer.bytes ?? answer.text ?? ''
  const secrets = await callbackSecrets(world, tenantId)
  const timestamp = Math.floor(world.clock.now() / 1000)
  const signature = signatureOf(
    { id: job.id, timestamp, body },
    secrets.map((it) => it.secret),
  )
  // Signs with the oldest secret, the one receivers know; the next is published while this one is still valid.
  const publicSignature = await publicSignatureOf(
    await canonicalBody(world, tenantId, body),
    secrets.at(-1)!.signingKey,
  )
  const headers = {
    'content-type': String(answer.headers?.['content-type'] ?? 'application/json'),
    'user-agent': product,
    'bt-trace-id': traceId,
    'bt-reactor-id': job.reactorId,
    'bt-reactor-request-id': job.id,
    'bt-reactor-status': String(answer.status),
    'bt-delivery-attempt': String(job.attempts),
    'bt-signature-version': 'v1',
    'bt-signature': publicSignature,
    'webhook-id': job.id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  }
  return {
    url: new URL(callbackUrl!),
    destinations: await allowedDestinationsOfResult(world, tenantId, initiator),
    headers: Object.entries(headers).flat(),
    body,
  }
}

/** Bytes that are not UTF-8 cannot be JSON, so they are signed as they are. */
async function canonicalBody(
  { canonicalJson }: Pick<World, 'canonicalJson'>,
  tenantId: string,
  body: string | Buffer,
): Promise<Uint8Array> {
  if (typeof body === 'string') return await canonicalJson.render(tenantId, body)
  return isUtf8(body) ? await canonicalJson.render(tenantId, body.toString()) : body
}

/** Logs the dead letter only once it is stored: if another process holds the job, it may still be delivered. */
async function keepDeadLetter(
  world: DeliveryWorld,
  tenantId: string,
  deadLetter: StoredJob,
  failure: string,
) {
  if (!(await put(world, tenantId, { kind: 'update', entity: 'job', row: deadLetter }))) return
  world.log.warn('callback_given_up', { job: deadLetter.id, failure })
}

/** Returns whether the claim on the job was still valid. */
async function put(
  { store, log }: DeliveryWorld,
  tenantId: string,
  change: EntityChange,
): Promise<boolean> {
  const conflict = await store.commit(tenantId, [change])
  if (conflict !== null) log.warn('job_lost', { change: change.kind })
  return conflict === null
}

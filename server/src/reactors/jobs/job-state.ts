/**
 * Seals and opens the request and the result of a job.
 *
 * Arguments are stored as sent, with expressions in place of data, and only until they have been run. Decision 0031.
 */
import type { PastGrant } from '../../access/authorize.ts'
import { openValue } from '../../request/open-value.ts'
import type { KeyReference, Principal } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json } from '../../base/json.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { Answer } from '../../request/response.ts'
import { parseKeptAnswer, renderKeptAnswer } from '../../request/kept-answer.ts'
import type { TenantKeys } from '../../ports/keyring.ts'
import { sealContextOf } from '../../ports/store/entities.ts'
import type { StoredJob } from '../../ports/jobs.ts'

export interface JobState {
  readonly traceId: string
  readonly initiator: Initiator
  /** Null once it has been run, or will not be. */
  readonly run: RunRequest | null
  /** The destination of the result; null if it is fetched. */
  readonly callbackUrl: string | null
  /** When the result must be deleted because it derives from a security code or an expiring token, in epoch milliseconds. */
  readonly resultUntil: number | null
  /** The grants that the result rests on. Undefined before it is run, and for results of older versions, which live a day. */
  readonly grants?: readonly PastGrant[]
  /** The reason the last delivery attempt failed. */
  readonly failure: string | null
  /** The status a waiting caller would have seen, for a dead letter; kept here so that listing opens no result. */
  readonly status: number | null
}

export interface RunRequest {
  readonly args: Json
  readonly timeoutMs: number
  /** Whether it may be run again after an interruption. */
  readonly rerun: boolean
}

/**
 * The initiator, by its stored ids. An application's permissions are looked up when needed. A session may have ended by
 * then, so its granted permissions count, as far as the grantor still has them.
 */
export interface Initiator extends Pick<Principal, 'applicationId' | 'keyId' | 'destinations'> {
  readonly session: SessionRights | null
}

interface SessionRights extends Pick<Principal, 'permissions' | 'rules' | 'within'> {
  readonly giverId?: string | undefined
  /** The keys that opened and authorized it. Jobs stored before these were kept have none. */
  readonly keys?: readonly KeyReference[]
}

export function initiatorOf(context: RequestContext): Initiator {
  const { applicationId, keyId, destinations, type, permissions, rules } = context
  const { within, grantorId: giverId, keys } = context
  const session = type === 'session' ? { permissions, rules, within, giverId, keys } : null
  return { applicationId, keyId, destinations, session }
}

export function sealJobState(keys: TenantKeys, id: string, state: JobState): Uint8Array {
  return keys.seal(
    sealContextOf('job', 'terms', id),
    new Sensitive(JSON.stringify(storedOf(state))),
  )
}

/** Throws `value_unreadable` if the job is damaged or was tampered with. */
export function openJobState(
  keys: TenantKeys,
  { id, terms }: Pick<StoredJob, 'id' | 'terms'>,
): JobState {
  const opened = openValue(keys, sealContextOf('job', 'terms', id), terms, {
    kind: 'job_request',
    id,
  })
  const { asker, ...state } = JSON.parse(opened.reveal()) as StoredJobState
  return { ...state, initiator: asker }
}

/** As stored, where the initiator has an earlier name. */
interface StoredJobState extends Omit<JobState, 'initiator'> {
  readonly asker: Initiator
}

function storedOf({ initiator, ...state }: JobState): StoredJobState {
  return { ...state, asker: initiator }
}

/** The body is stored as the text to send, so that an attempt need not parse what may be megabytes of JSON. */
export function sealResult(keys: TenantKeys, id: string, { body, ...answer }: Answer): Uint8Array {
  const kept: Answer = body === undefined ? answer : { ...answer, text: JSON.stringify(body) }
  return keys.seal(sealContextOf('job', 'result', id), new Sensitive(renderKeptAnswer(kept)))
}

/** Throws `value_unreadable` if the result is damaged or was tampered with, and another error if there is none. */
export function openResult(keys: TenantKeys, { id, result }: StoredJob): Answer {
  if (result === null) throw new Error('Cannot open the result of a job: there is none')
  const opened = openValue(keys, sealContextOf('job', 'result', id), result, {
    kind: 'job_result',
    id,
  })
  return parseKeptAnswer(opened.reveal()) as Answer
}

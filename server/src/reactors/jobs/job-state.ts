/**
 * What was asked of a job and what came of it, into envelopes and back.
 *
 * Arguments are kept as they were sent, with expressions in the place of data, and only until they have been run.
 * Decision 0031.
 */
import type { RequestContext, Principal } from '../../base/access.ts'
import type { Json } from '../../base/json.ts'
import { Sensitive } from '../../base/sensitive.ts'
import type { Answer } from '../../http/endpoint.ts'
import type { SealContext, TenantKeys } from '../../ports/keyring.ts'
import type { StoredJob } from '../../ports/jobs.ts'

export interface JobState {
  readonly traceId: string
  readonly asker: Initiator
  /** Null once it has been run, or will not be. */
  readonly run: RunRequest | null
  /** Where the result is sent to; null where it is fetched. */
  readonly callbackUrl: string | null
  /** When the result has to be gone, because a security code is behind it, in epoch milliseconds. */
  readonly resultUntil: number | null
  /** Why the last attempt to deliver came to nothing. */
  readonly failure: string | null
  /** Of a dead letter, what a caller who waits would have seen; for a list of them, which opens none. */
  readonly status: number | null
}

export interface RunRequest {
  readonly args: Json
  readonly timeoutMs: number
  /** Whether it may be begun again when it was interrupted. */
  readonly rerun: boolean
}

/**
 * Who invoked, under the names it is stored by. What an application may do is looked up when it counts; of a session, which may be over by then, what
 * it had been given counts, as far as whoever gave it has it still.
 */
export interface Initiator extends Pick<Principal, 'applicationId' | 'keyId' | 'destinations'> {
  readonly session: SessionRights | null
}

interface SessionRights extends Pick<Principal, 'permissions' | 'rules' | 'within'> {
  readonly giverId?: string | undefined
}

export function initiatorOf(context: RequestContext): Initiator {
  const { applicationId, keyId, destinations, type, permissions, rules } = context
  const { within, grantorId: giverId } = context
  const session = type === 'session' ? { permissions, rules, within, giverId } : null
  return { applicationId, keyId, destinations, session }
}

export function sealJobState(keys: TenantKeys, id: string, state: JobState): Uint8Array {
  return keys.seal(sealContextOf(id, 'terms'), new Sensitive(JSON.stringify(state)))
}

/** Throws if the job was tampered with. */
export function openJobState(
  keys: TenantKeys,
  { id, terms }: Pick<StoredJob, 'id' | 'terms'>,
): JobState {
  return JSON.parse(keys.open(sealContextOf(id, 'terms'), terms).reveal()) as JobState
}

/** With the body as the text that is sent, so that nobody reads what may be megabytes of JSON at each attempt. */
export function sealResult(keys: TenantKeys, id: string, { body, ...answer }: Answer): Uint8Array {
  const kept: Answer = body === undefined ? answer : { ...answer, text: JSON.stringify(body) }
  return keys.seal(sealContextOf(id, 'result'), new Sensitive(JSON.stringify(kept)))
}

/** Throws if the result was tampered with, or there is none. */
export function openResult(keys: TenantKeys, { id, result }: StoredJob): Answer {
  if (result === null) throw new Error('Cannot open the result of a job: there is none')
  return JSON.parse(keys.open(sealContextOf(id, 'result'), result).reveal()) as Answer
}

function sealContextOf(id: string, part: string): SealContext {
  return { id, part, type: 'job', containers: [] }
}

import { z } from 'zod'
import { renderInstant } from '../../base/instant.ts'
import type { JsonObject } from '../../base/json.ts'
import { cursorSchema, pageQuery } from '../../request/pagination.ts'
import type { StoredJob } from '../../ports/jobs.ts'
import type { LogFields } from '../../ports/log.ts'
import type { JobState } from '../jobs/job-state.ts'
import type { CallbackSecret } from './secrets.ts'
import { publicKeyOf } from './signature.ts'

/**
 * The wire format of dead letters and callback secrets.
 *
 * Source: interface.md, Callbacks.
 */

const instant = z.iso.datetime({ offset: true })

export const callbackSchema = z
  .object({
    id: z.uuid().meta({ description: 'As in the header webhook-id.' }),
    reactor_id: z.uuid(),
    destination: z.string().optional().meta({ description: 'The host that did not take it.' }),
    status: z.int().optional().meta({ description: 'As in the header BT-REACTOR-STATUS.' }),
    attempts: z.int(),
    failure: z.string().meta({ description: 'What became of the last attempt.' }),
    created_at: instant,
    expires_at: instant,
    _extras: z
      .object({ unreadable: z.literal(true) })
      .optional()
      .describe('Only if the stored request is damaged.'),
  })
  .meta({ id: 'Callback', description: 'A result that was not taken by its receiver.' })

export const callbacksQuery = z.object({
  start: z.string().optional().meta({ description: '`pagination.next` of the answer before.' }),
  size: pageQuery.shape.size,
})

export const callbackPageSchema = z
  .object({ pagination: cursorSchema, data: z.array(callbackSchema) })
  .meta({ id: 'CallbackPage', description: 'A stretch of a list, and where the next begins.' })

export const callbackSecretSchema = z
  .object({
    secrets: z.array(
      z.object({ secret: z.string(), public_key: z.string(), expires_at: instant.optional() }),
    ),
  })
  .meta({ id: 'CallbackSecrets', description: 'What callbacks are signed with, the newest first.' })

/** A null `state` means that it is damaged. */
export function renderCallback(job: Omit<StoredJob, 'result'>, state: JobState | null): JsonObject {
  return {
    id: job.id,
    reactor_id: job.reactorId,
    ...(state?.callbackUrl == null ? {} : { destination: new URL(state.callbackUrl).host }),
    ...(state?.status == null ? {} : { status: state.status }),
    attempts: job.attempts,
    failure: state === null ? 'unreadable' : (state.failure ?? ''),
    created_at: renderInstant(job.createdAt),
    expires_at: renderInstant(job.dueAt),
    ...(state === null && { _extras: { unreadable: true } }),
  }
}

/** Renders a failed attempt for the log. Names the host only: the path and query of the URL may be secret. */
export function renderFailedAttempt(
  tenantId: string,
  { id, attempts }: StoredJob,
  { callbackUrl, failure }: JobState,
  nextAt: number | null,
): LogFields {
  return {
    job: id,
    tenant: tenantId,
    destination: new URL(callbackUrl!).host,
    failure,
    attempt: attempts,
    next_at: nextAt === null ? null : renderInstant(nextAt),
  }
}

export function renderSecrets(secrets: readonly CallbackSecret[]): JsonObject {
  return {
    secrets: secrets.map(({ secret, signingKey, until }) => {
      return {
        secret: secret.reveal(),
        public_key: publicKeyOf(signingKey),
        ...(until === null ? {} : { expires_at: renderInstant(until) }),
      }
    }),
  }
}

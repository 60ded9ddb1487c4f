import { z } from 'zod'
import { isUnambiguous } from '../../base/absolute-url.ts'
import type { Plan } from '../../base/access.ts'
import type { RequestContext } from '../../request/context.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import {
  CALLBACK_URL_CHARS_MAX,
  REACTOR_TIMEOUT_ASKED_MS_MAX,
  REACTOR_TIMEOUT_ASKED_MS_MIN,
} from '../../base/limits.ts'
import { REFUSALS, ServiceError } from '../../base/service-error.ts'
import type { Answer } from '../../request/response.ts'
import { parseBody } from '../../request/parse.ts'
import { VALIDATION_TITLE } from '../../request/render-error.ts'
import { tokenizeAnswer } from '../../tokens/wire.ts'
import type { LogFields } from '../../ports/log.ts'
import type { LoggedFailure } from './interpret-outcome.ts'
import type { Failure } from './thrown-error.ts'
import { text } from '../../request/text-length.ts'

/**
 * The wire format of invocations.
 *
 * Source: interface.md, Reactors.
 */

const timeout = z
  .int()
  .min(REACTOR_TIMEOUT_ASKED_MS_MIN)
  .max(REACTOR_TIMEOUT_ASKED_MS_MAX)
  .optional()
  .meta({ description: 'Only means something with a callback.' })

const callback = text({ max: CALLBACK_URL_CHARS_MAX })
  .refine((it) => isUnambiguous(it) && !it.includes('#') && URL.canParse(it), {
    message: 'It must be an absolute URL of printable ASCII, without a fragment.',
  })
  .optional()
  .meta({
    description: 'Where to send the result. The response is then an empty 202.',
  })

const rerun = z
  .boolean()
  .optional()
  .meta({ description: 'Whether the code may be run again when its run was interrupted.' })

const anyJson = z.any().meta({ description: 'Any JSON value.' })

export const reactBody = z
  .object({
    args: anyJson.optional().meta({ description: 'Any JSON, with expressions in its texts.' }),
    callback_url: callback,
    callbackUrl: callback,
    timeout_ms: timeout,
    timeoutMs: timeout,
    rerun_interrupted: rerun,
  })
  .meta({
    id: 'ReactRequest',
    description: 'The input of the code.',
    examples: [
      { args: { amount: 1000 } },
      { args: { amount: 1000 }, callback_url: 'https://receiver.example/done' },
    ],
  })

export const reactAnswer = z
  .object({
    tokens: tokenizeAnswer.optional(),
    raw: anyJson.optional(),
  })
  .meta({ id: 'ReactAnswer', description: 'What code returned; its tokens were made.' })

export const acceptedSchema = z
  .object({ asyncReactorRequestId: z.uuid() })
  .meta({ id: 'AcceptedRun', description: 'A run that nobody waits for.' })

export const DETAIL_OF_ERROR = REFUSALS.reactor_error.detail
export const DETAIL_OF_CODE = REFUSALS.reactor_code_invalid.detail

/** The parsed request of a caller. */
export interface RequestedInvocation {
  readonly args: Json
  readonly timeoutMs: number
  readonly callbackUrl: URL | null
  readonly rerun: boolean
}

/** Throws `body_invalid`, and `plan_insufficient` for options that require the enterprise plan. */
export function parseReact(body: Json | undefined, plan: Plan): RequestedInvocation {
  const it = parseBody(reactBody, body ?? {})
  const callbackUrl = it.callback_url ?? it.callbackUrl
  const timeoutMs = it.timeout_ms ?? it.timeoutMs
  if (plan !== 'enterprise' && (callbackUrl !== undefined || timeoutMs !== undefined)) {
    throw new ServiceError('plan_insufficient')
  }
  return {
    args: it.args === undefined ? {} : (it.args as Json),
    timeoutMs: timeoutMs ?? REACTOR_TIMEOUT_ASKED_MS_MIN,
    callbackUrl: callbackUrl === undefined ? null : new URL(callbackUrl),
    rerun: it.rerun_interrupted ?? false,
  }
}

/** Like parseReact(), for a result that is fetched: also throws `body_invalid` for a callback. */
export function parseReactAsync(body: Json | undefined, plan: Plan): RequestedInvocation {
  const asked = parseReact(body, plan)
  if (asked.callbackUrl === null) return asked
  throw new ServiceError('body_invalid', { callback_url: ['Leave it out: the result is kept.'] })
}

/** Renders a failure of the code for the log. */
export function renderLoggedFailure(
  { tenantId, traceId }: Pick<RequestContext, 'tenantId' | 'traceId'>,
  reactorId: string,
  failure: LoggedFailure,
): LogFields {
  return { tenant: tenantId, reactor: reactorId, trace_id: traceId, ...failure }
}

/** Renders a failure of the code; every text in it goes through `redact`. */
export function renderFailure(
  { status, detail, errors }: Failure,
  code: 'reactor_error' | 'reactor_code_invalid' | 'reactor_interrupted' | 'reactor_result_expired',
  redact: (text: string) => string,
): Answer {
  const shown: JsonObject = {}
  for (const [name, texts] of Object.entries(errors)) shown[redact(name)] = texts.map(redact)
  const body = { errors: shown, title: VALIDATION_TITLE, status, detail: redact(detail), code }
  return { status, body }
}

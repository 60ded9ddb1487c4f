import { z } from 'zod'
import type { Json, JsonObject } from '../../base/json.ts'
import { REACTOR_TIMEOUT_ASKED_MS_MAX, REACTOR_TIMEOUT_ASKED_MS_MIN } from '../../base/limits.ts'
import { REFUSALS } from '../../base/service-error.ts'
import type { Answer } from '../../http/endpoint.ts'
import { parseBody } from '../../http/parse.ts'
import { VALIDATION_TITLE } from '../../http/render-error.ts'
import { tokenizeAnswer } from '../../tokens/wire.ts'
import type { Failure } from './thrown-error.ts'

/**
 * Invocations as they go over the wire.
 *
 * Source: interface.md, Reactors.
 */

const timeout = z
  .int()
  .min(REACTOR_TIMEOUT_ASKED_MS_MIN)
  .max(REACTOR_TIMEOUT_ASKED_MS_MAX)
  .optional()
  .meta({ description: 'Only means something with a callback.' })

/** To run it at once and send nothing would look as if the result had been lost. */
const callback = z
  .custom<undefined>((it) => it === undefined, 'Not available in this version: leave it out.')
  .optional()
  .meta({ type: 'null' })

const anyJson = z.any().meta({ description: 'Any JSON value.' })

export const reactBody = z
  .object({
    args: anyJson.optional().meta({ description: 'Any JSON, with expressions in its texts.' }),
    callback_url: callback,
    callbackUrl: callback,
    timeout_ms: timeout,
    timeoutMs: timeout,
  })
  .meta({ id: 'ReactRequest', description: 'What code is given.' })

export const reactAnswer = z
  .object({
    tokens: tokenizeAnswer.optional(),
    raw: anyJson.optional(),
  })
  .meta({ id: 'ReactAnswer', description: 'What code returned; its tokens were made.' })

export const DETAIL_OF_ERROR = REFUSALS.reactor_error.detail
export const DETAIL_OF_CODE = REFUSALS.reactor_code_invalid.detail

/** Returns the arguments. Throws `body_invalid`. */
export function parseReact(body: Json | undefined): Json {
  const { args } = parseBody(reactBody, body ?? {})
  return args === undefined ? {} : (args as Json)
}

/** Renders a failure of the code; every text in it goes through `redact`. */
export function renderFailure(
  { status, detail, errors }: Failure,
  code: 'reactor_error' | 'reactor_code_invalid',
  redact: (text: string) => string,
): Answer {
  const shown: JsonObject = {}
  for (const [name, texts] of Object.entries(errors)) shown[redact(name)] = texts.map(redact)
  const body = { errors: shown, title: VALIDATION_TITLE, status, detail: redact(detail), code }
  return { status, body }
}

/** Reports a run that did not return: the code's own message, with its input redacted. */
import type { Json } from '../../base/json.ts'
import type { Answer } from '../../http/endpoint.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'
import { customResponse, isCustomResponse } from './custom-response.ts'
import { redactor } from './redact.ts'
import { readResult, type Result } from './result.ts'
import { failureOf, runtimeError, trimmed, type Failure } from './thrown-error.ts'
import { DETAIL_OF_CODE, renderFailure } from './wire.ts'

/** The outcome of a run: its result, or the answer in its place. */
export type Told =
  | { readonly result: Result; readonly answer: null }
  | { readonly result: null; readonly answer: Answer }

/** `timeoutMs` is the limit of the run; `secrets` is called only if the report could contain them. */
export function tell(
  outcome: ReactorOutcome,
  timeoutMs: number,
  secrets: () => readonly Json[],
): Told {
  const told = read(outcome, timeoutMs)
  if ('detail' in told) {
    return { result: null, answer: renderFailure(told, codeOf(outcome), redactor(secrets())) }
  }
  if ('status' in told) return { result: null, answer: told }
  return { result: told, answer: null }
}

function read(outcome: ReactorOutcome, timeoutMs: number): Result | Answer | Failure {
  switch (outcome.kind) {
    case 'returned': {
      const result = readResult(outcome.result)
      return typeof result === 'string' ? runtimeError(result) : result
    }
    case 'threw': {
      const { error } = outcome
      if (!isCustomResponse(error)) return failureOf(error)
      const response = customResponse(error)
      return typeof response === 'string' ? runtimeError(response) : response
    }
    case 'no-function':
      return {
        status: 422,
        detail: DETAIL_OF_CODE,
        errors: { error: [trimmed(outcome.message)] },
      }
    case 'timed-out':
      return runtimeError(`The reactor timed out after ${timeoutMs / 1000} seconds.`)
    case 'out-of-memory':
      return runtimeError('The reactor used more memory than it may.')
    case 'died':
      return runtimeError('The reactor ended without an answer.')
    default:
      throw new TypeError('Cannot tell: a run ended in no known way', {
        cause: outcome satisfies never,
      })
  }
}

function codeOf({ kind }: ReactorOutcome): 'reactor_code_invalid' | 'reactor_error' {
  return kind === 'no-function' ? 'reactor_code_invalid' : 'reactor_error'
}

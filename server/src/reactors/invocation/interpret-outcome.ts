/** Interprets the outcome of a run. Messages of the code are kept, with its input redacted. */
import type { Json } from '../../base/json.ts'
import type { Answer } from '../../http/endpoint.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'
import { customResponse, isCustomResponse } from './custom-response.ts'
import { redactor } from './redact.ts'
import { readResult, type Result } from './result.ts'
import { failureOf, runtimeError, trimmed, type Failure } from './thrown-error.ts'
import { DETAIL_OF_CODE, renderFailure } from './wire.ts'

/** The result of a run, or the answer if there is none. */
export type InterpretedOutcome =
  | { readonly result: Result; readonly answer: null }
  | { readonly result: null; readonly answer: Answer }

/** `timeoutMs` is the limit of the run; `secrets` is called only if the report could contain them. */
export function interpretOutcome(
  outcome: ReactorOutcome,
  timeoutMs: number,
  secrets: () => readonly Json[],
): InterpretedOutcome {
  const interpreted = interpret(outcome, timeoutMs)
  if ('detail' in interpreted) {
    return {
      result: null,
      answer: renderFailure(interpreted, codeOf(outcome), redactor(secrets())),
    }
  }
  if ('status' in interpreted) return { result: null, answer: interpreted }
  return { result: interpreted, answer: null }
}

function interpret(outcome: ReactorOutcome, timeoutMs: number): Result | Answer | Failure {
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
      throw new TypeError('Cannot interpret the outcome of a run: its kind is unknown', {
        cause: outcome satisfies never,
      })
  }
}

function codeOf({ kind }: ReactorOutcome): 'reactor_code_invalid' | 'reactor_error' {
  return kind === 'no-function' ? 'reactor_code_invalid' : 'reactor_error'
}

/** Interprets the outcome of a run. Messages of the code are kept, with its input redacted. */
import type { Json } from '../../base/json.ts'
import type { Answer } from '../../request/response.ts'
import {
  describePosition,
  type CodePosition,
  type ReactorOutcome,
} from '../../ports/reactor-runner.ts'
import { customResponse, isCustomResponse } from './custom-response.ts'
import type { ResponseHeaderSettings } from '../../base/guarded-headers.ts'
import { redactor } from './redact.ts'
import { readResult, type Result } from './result.ts'
import { failureOf, runtimeError, trimmed, type Failure } from './thrown-error.ts'
import { DETAIL_OF_CODE, renderFailure } from './wire.ts'

/** The result of a run, or the answer if there is none, and what the log has about a failure of the code. */
export type InterpretedOutcome =
  | { readonly result: Result; readonly answer: null; readonly failure: null }
  | { readonly result: null; readonly answer: Answer; readonly failure: LoggedFailure | null }

/** A failure of the code as the operator may see it: nothing in it is text of the code. */
export interface LoggedFailure {
  readonly status: number
  readonly code: 'reactor_code_invalid' | 'reactor_error'
  readonly ended: Exclude<ReactorOutcome['kind'], 'unsendable'>
  /** Where in the code, if that is known. */
  readonly line?: number
  readonly column?: number
}

interface Interpreting {
  /** The limit of the run. */
  readonly timeoutMs: number
  readonly responseHeaders: ResponseHeaderSettings
}

/** `secrets` is called only if the report could contain them. */
export function interpretOutcome(
  outcome: ReactorOutcome,
  settings: Interpreting,
  secrets: () => readonly Json[],
): InterpretedOutcome {
  const interpreted = interpret(outcome, settings)
  if ('detail' in interpreted) {
    const code = codeOf(outcome)
    const { status } = interpreted
    return {
      result: null,
      answer: renderFailure(interpreted, code, redactor(secrets())),
      failure: { status, code, ended: endOf(outcome), ...positionOf(outcome) },
    }
  }
  if ('status' in interpreted) return { result: null, answer: interpreted, failure: null }
  return { result: interpreted, answer: null, failure: null }
}

function interpret(
  outcome: ReactorOutcome,
  { timeoutMs, responseHeaders }: Interpreting,
): Result | Answer | Failure {
  switch (outcome.kind) {
    case 'returned':
      return readResult(outcome)
    case 'unsendable':
      return runtimeError('What the reactor returned is no JSON that could be sent.')
    case 'threw': {
      const { error } = outcome
      if (!isCustomResponse(error)) return failureOf(error)
      const response = customResponse(error, responseHeaders)
      return typeof response === 'string' ? runtimeError(response) : response
    }
    case 'no-function':
      return {
        status: 422,
        detail: DETAIL_OF_CODE,
        errors: { error: [trimmed(outcome.message) + whereIn(outcome)] },
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

/** The code's author needs the place to fix it, and it reveals no value. */
function whereIn({ position }: Extract<ReactorOutcome, { kind: 'no-function' }>): string {
  return position === null ? '' : ` (${describePosition(position)})`
}

function positionOf(outcome: ReactorOutcome): CodePosition | null {
  return 'position' in outcome ? outcome.position : null
}

function endOf({ kind }: ReactorOutcome): LoggedFailure['ended'] {
  return kind === 'unsendable' ? 'returned' : kind
}

function codeOf({ kind }: ReactorOutcome): 'reactor_code_invalid' | 'reactor_error' {
  return kind === 'no-function' ? 'reactor_code_invalid' : 'reactor_error'
}

import type { Json } from '../base/json.ts'
import { EXPRESSION_RESULT_CHARS_MAX, EXPRESSION_WORK_CHARS_MAX } from '../base/limits.ts'
import type { Random } from '../ports/random.ts'
import { FilterError } from './expression-error.ts'

/** The variables an expression may use, and the source of randomness for its aliases. */
export interface Scope {
  /** By name: `data` always, `metadata` where it is available. Any other name is null. */
  readonly variables: Variables
  readonly random: Random
  /** Shared with other evaluations of the same request; absent for an evaluation on its own. */
  readonly costBudget?: CostBudget
}

/** The part of the scope that evaluations of different subjects share. */
export type EvaluationContext = Omit<Scope, 'variables'>

/**
 * Bounds the total work of all evaluations of one request.
 *
 * Each can write much from little, and a payload may ask for thousands: without a shared budget, a request of a few megabytes
 * was answered with gigabytes.
 */
export class CostBudget {
  #work: number
  #shown: number

  /** Both in characters. */
  constructor(workMax: number, shownMax: number) {
    this.#work = workMax
    this.#shown = shownMax
  }

  /** Whether a request for more than was left has failed, even if the error was swallowed. */
  get isExhausted(): boolean {
    return this.#work < 0 || this.#shown < 0
  }

  /** Throws `work_too_large` if nothing is left. */
  spend(chars: number): void {
    this.#work -= chars
    if (this.#work < 0) throw new FilterError('work_too_large')
  }

  /** Throws `result_too_large` if nothing more may be shown. */
  show(chars: number): void {
    this.#shown -= chars
    if (this.#shown < 0) throw new FilterError('result_too_large')
  }
}

export type Variables = Readonly<Record<string, Json>>

/**
 * One evaluation of a template, or of a whole mask: its scope, and its remaining work.
 *
 * Work is counted in characters read or written. Every operation that repeats, copies or searches spends before it runs, so
 * that no expression, however it is composed, holds the event loop for long.
 */
export class EvaluationRun {
  readonly variables: Variables
  readonly random: Random
  /** Whether the result is shown to a reader who may not see the data. */
  readonly masking: boolean
  readonly #costBudget: CostBudget | undefined
  #left = EXPRESSION_WORK_CHARS_MAX

  constructor(scope: Scope, masking: boolean) {
    this.variables = scope.variables
    this.random = scope.random
    this.masking = masking
    this.#costBudget = scope.costBudget
  }

  /** Throws `work_too_large` if nothing is left. */
  spend(chars: number): void {
    this.#left -= chars
    if (this.#left < 0) throw new FilterError('work_too_large')
    this.#costBudget?.spend(chars)
  }

  /** Spends for `chars` characters of an answer. */
  show(chars: number): void {
    this.spend(chars)
    this.#costBudget?.show(chars)
  }

  /** Spends for writing `chars` characters of a text of `total`; throws `result_too_large` if `total` exceeds the limit. */
  write(chars: number, total = chars): void {
    if (total > EXPRESSION_RESULT_CHARS_MAX) throw new FilterError('result_too_large')
    this.spend(chars)
  }
}

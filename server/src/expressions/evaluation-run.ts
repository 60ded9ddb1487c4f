import type { Json } from '../base/json.ts'
import { EXPRESSION_RESULT_CHARS_MAX, EXPRESSION_WORK_CHARS_MAX } from '../base/limits.ts'
import type { Random } from '../ports/random.ts'
import { FilterError } from './expression-error.ts'

/** What an expression may speak about, and where its aliases get their chance from. */
export interface Scope {
  /** By name: `data` always, `metadata` where it is offered. Any other name is null. */
  readonly variables: Variables
  readonly random: Random
  /** What it shares with other evaluations of the same request; without one it stands alone. */
  readonly costBudget?: CostBudget
}

/** What evaluations have in common whose subjects differ. */
export type EvaluationContext = Omit<Scope, 'variables'>

/**
 * What all evaluations of one request may do together.
 *
 * Each may write much from little, and a payload may ask for thousands: without it, a request of a few
 * megabytes was answered with gigabytes.
 */
export class CostBudget {
  #work: number
  #shown: number

  /** Both in characters. */
  constructor(workMax: number, shownMax: number) {
    this.#work = workMax
    this.#shown = shownMax
  }

  /** Whether something was asked for that it was not enough for, whoever was told. */
  get isExhausted(): boolean {
    return this.#work < 0 || this.#shown < 0
  }

  /** Throws `work_too_large` when nothing is left. */
  spend(chars: number): void {
    this.#work -= chars
    if (this.#work < 0) throw new FilterError('work_too_large')
  }

  /** Throws `result_too_large` when nothing more may be shown. */
  show(chars: number): void {
    this.#shown -= chars
    if (this.#shown < 0) throw new FilterError('result_too_large')
  }
}

export type Variables = Readonly<Record<string, Json>>

/**
 * One evaluation of a template, or of all of a mask: its scope, and the work it may still do.
 *
 * Work is counted in characters read or written. Whatever repeats, copies or searches spends first, so
 * that no expression, however it is put together, holds the event loop for long.
 */
export class EvaluationRun {
  readonly variables: Variables
  readonly random: Random
  /** Whether the result is shown to someone who may not see the data. */
  readonly masking: boolean
  readonly #costBudget: CostBudget | undefined
  #left = EXPRESSION_WORK_CHARS_MAX

  constructor(scope: Scope, masking: boolean) {
    this.variables = scope.variables
    this.random = scope.random
    this.masking = masking
    this.#costBudget = scope.costBudget
  }

  /** Throws `work_too_large` when nothing is left. */
  spend(chars: number): void {
    this.#left -= chars
    if (this.#left < 0) throw new FilterError('work_too_large')
    this.#costBudget?.spend(chars)
  }

  /** Spends for `chars` characters that go into an answer. */
  show(chars: number): void {
    this.spend(chars)
    this.#costBudget?.show(chars)
  }

  /**
   * Spends for writing `chars` characters of a text of `total`; throws `result_too_large` when none may
   * be so long.
   */
  write(chars: number, total = chars): void {
    if (total > EXPRESSION_RESULT_CHARS_MAX) throw new FilterError('result_too_large')
    this.spend(chars)
  }
}

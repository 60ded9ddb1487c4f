import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { TRANSACTION_KEPT_MS } from '../../../base/limits.ts'
import { ANYTHING_TO_SWEEP } from './sweep-statements.ts'

/** Checks whether there is anything to sweep, so that idle sweeps write nothing. */
export class SweepLook {
  readonly #anything: StatementSync

  constructor(db: DatabaseSync) {
    this.#anything = db.prepare(ANYTHING_TO_SWEEP)
  }

  anythingAt(now: number): boolean {
    return this.#anything.get(now, now - TRANSACTION_KEPT_MS)!['anything'] === 1
  }
}

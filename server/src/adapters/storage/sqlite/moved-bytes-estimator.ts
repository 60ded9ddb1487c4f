import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Change } from '../../../ports/change.ts'
import { packId } from './ids.ts'
import { DROPPED } from './sweep.ts'
import { held } from './token-changes.ts'
import { numberOf } from './visibility.ts'

/**
 * Estimates the data that ending a transaction moves, so that two large ends never share a batch
 * and delay other commits.
 */
export class MovedBytesEstimator {
  readonly #looks: Readonly<Record<'committed' | 'rolled_back', StatementSync>>

  constructor(db: DatabaseSync) {
    this.#looks = {
      committed: db.prepare(`SELECT (${held(`holder = ${numberOf('?1', '?2')}`)}) AS bytes`),
      rolled_back: db.prepare(DROPPED),
    }
  }

  /** Returns about how many bytes a commit moves within the database, beyond those it carries. */
  estimate(tenantId: string, changes: readonly Change[]): number {
    let moved = 0
    for (const it of changes) {
      if (it.kind !== 'end-transaction' || it.as === 'expired') continue
      moved += Number(this.#looks[it.as].get(packId(tenantId), packId(it.id))!['bytes'] ?? 0)
    }
    return moved
  }
}

import type { Conflict } from '../../../ports/change.ts'
import type { PostgresPendingEvent } from './audit-writer.ts'
import type { Session } from './session.ts'
import { PostgresTokenTally } from './token-tally.ts'

/** A commit in progress: its tenant, and what the batch writes for it at the end. */
export interface UnitOfWork {
  readonly session: Session
  readonly tenantId: string
  /** The transaction that the commit is part of. */
  readonly within: string | null
  readonly tally: PostgresTokenTally
  readonly events: PostgresPendingEvent[]
}

export function newUnitOfWork(
  session: Session,
  tenantId: string,
  within: string | null,
): UnitOfWork {
  return { session, tenantId, within, tally: new PostgresTokenTally(), events: [] }
}

/** Outcome of a change: null when made, or the conflict. */
export type ChangeStep = Promise<Conflict | null>

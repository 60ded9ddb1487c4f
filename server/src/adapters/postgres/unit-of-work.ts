import type { Conflict } from '../../ports/change.ts'
import type { PostgresPendingEvent } from './audit-writer.ts'
import type { Session } from './session.ts'
import { PostgresTokenTally } from './token-tally.ts'

/** A commit being made: whose it is, and what is to be written with it at the end of the batch. */
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

/** What a change comes to: null when it is made. */
export type ChangeStep = Promise<Conflict | null>

import type { Conflict } from '../../ports/change.ts'
import type { Pending } from './audit-writer.ts'
import type { Session } from './session.ts'
import { TokenTally } from './token-tally.ts'

/** A commit being made: whose it is, and what is to be written with it at the end of the batch. */
export interface UnitOfWork {
  readonly session: Session
  readonly tenantId: string
  /** The transaction that the commit is part of. */
  readonly within: string | null
  readonly tally: TokenTally
  readonly events: Pending[]
}

export function newUnitOfWork(
  session: Session,
  tenantId: string,
  within: string | null,
): UnitOfWork {
  return { session, tenantId, within, tally: new TokenTally(), events: [] }
}

/** What a change comes to: null when it is made. */
export type Step = Promise<Conflict | null>

import { isSamePosition, type ChainPosition } from '../ports/audit-log.ts'
import type { AuditLogReader } from '../ports/store.ts'
import { rewritten, type Flaw } from './chain-flaws.ts'

/**
 * The events that the newest checkpoints of this process end with, by tenant. An older checkpoint that was put back, with the events
 * of its time, is genuine, too: only such a memory shows that there was a newer one.
 */
export class CoveredEnds {
  readonly #ends = new Map<string, ChainPosition>()

  remember(tenantId: string, end: ChainPosition): void {
    this.#ends.set(tenantId, end)
  }

  /** Returns the flaw if the audit log no longer contains the event; null if it does, or retention removed it. */
  async flawOf(auditLog: AuditLogReader, tenantId: string): Promise<Flaw | null> {
    const end = this.#ends.get(tenantId)
    if (end === undefined) return null
    const { number } = end
    const [row] = await auditLog.rowsAfter(tenantId, number - 1, 1)
    if (isSamePosition(row, end)) return null
    // Read after the event, which may be removed at any time.
    const state = await auditLog.state(tenantId)
    if (state === null || state.removed.number >= number) return null
    if (row?.number === number) return rewritten(number)
    return { number, what: 'is missing, and a checkpoint covered it' }
  }
}

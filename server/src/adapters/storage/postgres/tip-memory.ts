import { AUDIT_TIPS_MAX } from '../../../base/limits.ts'
import { isSameTip, type LostTip, type RememberedTip } from '../../../ports/remembered-tip.ts'
import type { TipComparison } from './tip-comparison.ts'

/** Remembered tips, by tenant. */
export type RememberedTips = ReadonlyMap<string, RememberedTip>

/**
 * The ends of audit logs that this process has seen committed: a failover or a restore may take them from the database.
 * Decision 0104.
 *
 * A tip is replaced only by one of which it is known that it continues it, or after its loss was noted: otherwise another
 * server that writes past a lost tip would hide the loss. Beyond AUDIT_TIPS_MAX tenants, one that was found absent is
 * forgotten, or else the one whose tip moved longest ago.
 */
export class TipMemory {
  readonly #max: number
  /** In the order in which they moved. */
  readonly #tips = new Map<string, RememberedTip>()
  /** Tenants that the last comparison did not find: deleted for good, or set aside. */
  readonly #absent = new Set<string>()
  #lost: LostTip[] = []
  /** Those whose loss was noted. */
  readonly #noted = new WeakSet<RememberedTip>()
  /** Tenants that takeSome() has yet to return in this round. */
  #due: string[] = []

  constructor(max = AUDIT_TIPS_MAX) {
    this.#max = max
  }

  /** Returns the tips of these tenants, as far as they are remembered. */
  of(tenantIds: readonly string[]): RememberedTips {
    const found = new Map<string, RememberedTip>()
    for (const it of tenantIds) {
      const tip = this.#tips.get(it)
      if (tip !== undefined) found.set(it, tip)
    }
    return found
  }

  /** Returns up to `count` tips to compare: over several calls all of them, then again from the first. */
  takeSome(count: number): RememberedTips {
    if (this.#due.length === 0) this.#due = [...this.#tips.keys()]
    return this.of(this.#due.splice(0, count))
  }

  /** Remembers a tip that was read, unless there is one already: nothing shows that this one continues it. */
  noteRead(tenantId: string, tip: RememberedTip): void {
    if (this.#tips.has(tenantId)) return
    if (this.#tips.size - this.#absent.size < this.#max) this.#put(tenantId, tip)
  }

  /**
   * Replaces `before`, which was remembered when a transaction began, with `now`, the tip as that transaction left it.
   * `comparison` is undefined if the transaction continued `before` itself.
   */
  settle(
    tenantId: string,
    before: RememberedTip | undefined,
    now: RememberedTip,
    comparison?: TipComparison,
  ): void {
    // Another transaction was faster. Only `before` was compared: the next comparison decides about its tip.
    if (this.#tips.get(tenantId) !== before) return
    if (comparison?.found === 'absent') {
      if (before !== undefined) this.#absent.add(tenantId)
      return
    }
    this.#absent.delete(tenantId)
    if (before !== undefined && comparison !== undefined) this.#heed(tenantId, before, comparison)
    if (before !== undefined && isSameTip(before, now)) return
    this.#put(tenantId, now)
  }

  /** Returns the losses noted since the last call. */
  takeLost(): readonly LostTip[] {
    const lost = this.#lost
    this.#lost = []
    return lost
  }

  /** Notes a loss, once for each tip: one whose event alone is gone stays the last. */
  #heed(tenantId: string, before: RememberedTip, { found, tip }: TipComparison): void {
    if (found === 'kept') this.#noted.delete(before)
    if (found !== 'lost' || this.#noted.has(before) || this.#lost.length >= this.#max) return
    this.#noted.add(before)
    this.#lost.push({ tenantId, tip: before, last: tip.number })
  }

  #put(tenantId: string, tip: RememberedTip): void {
    this.#tips.delete(tenantId)
    this.#tips.set(tenantId, tip)
    if (this.#tips.size <= this.#max) return
    const [forgotten] = this.#absent.size > 0 ? this.#absent : this.#tips.keys()
    this.#absent.delete(forgotten!)
    this.#tips.delete(forgotten!)
  }
}

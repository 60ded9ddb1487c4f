/** Compares checkpoints that were kept outside the database with the audit logs in it. Decision 0083. */
import { AUDIT_EVENTS_AT_ONCE, CHECKPOINT_LINES_AT_ONCE } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import type { TenantKeys } from '../ports/keyring.ts'
import type { AuditLogState } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { isGenuineLine, parseCheckpointLine, type CheckpointLine } from './checkpoint-line.ts'

/** How the lines of one tenant compare. */
export interface CheckpointComparison {
  readonly tenantId: string
  /**
   * `gone` if the database has no such tenant; `deleted` if it has, but not its keys any more; `unreadable` if its keys or its audit
   * log cannot be read, which their verification says, too.
   */
  readonly tenant: 'present' | 'deleted' | 'unreadable' | 'gone'
  /** Genuine lines; of a tenant that is not present, all of them. */
  readonly checkpoints: number
  /** Times of the earliest and the latest of these; null for none. */
  readonly from: number | null
  readonly to: number | null
  /** Lines whose event is in the audit log. */
  readonly equal: number
  /** Lines whose event was removed since, as older than the retention period. */
  readonly removed: number
  /** Lines whose event is missing. */
  readonly missing: number
  /** Lines in whose place there is another event. */
  readonly different: number
  /** Lines by which fewer events are left than the database has. */
  readonly restored: number
  /** Lines that the tenant's keys did not make. */
  readonly forged: number
  /** The line with the lowest number that does not match. */
  readonly mismatch: CheckpointMismatch | null
}

export interface CheckpointMismatch {
  /** Of the event that a checkpoint ends with. */
  readonly number: number
  readonly what: 'missing' | 'different' | 'restored'
  /** Time of the checkpoint. */
  readonly at: number
}

export interface ComparedCheckpoints {
  /** By tenant id. */
  readonly tenants: ReadonlyMap<string, CheckpointComparison>
  /** Lines of a checkpoint of any tenant. */
  readonly found: number
  /** Lines that seem to be of a checkpoint, but cannot be read. */
  readonly unreadable: number
  /** Lines of tenants that are not in the database, beyond the first TENANTS_GONE_MAX tenants. */
  readonly left: number
}

export interface CompareOptions {
  /** Compares the lines of this tenant alone. */
  readonly tenant?: string | undefined
  /** Called after each chunk, with the number of checkpoints so far. */
  readonly onProgress?: (checkpoints: number) => void
}

type ComparisonWorld = Pick<World, 'clock' | 'keyring'> & {
  readonly store: {
    readonly auditLog: Pick<World['store']['auditLog'], 'rowsAfter' | 'state'>
    readonly tenants: Pick<World['store']['tenants'], 'find' | 'deleted'>
  }
}

/**
 * Compares every checkpoint in `lines` with the event of its number: after a rollback the service goes on and makes genuine
 * checkpoints of other events, newer than those that were lost.
 *
 * Reads lines and events in chunks; of the lines it keeps a summary per tenant.
 */
export async function compareCheckpoints(
  world: ComparisonWorld,
  lines: AsyncIterable<string>,
  { tenant, onProgress }: CompareOptions = {},
): Promise<ComparedCheckpoints> {
  const tenants = new Map<string, TenantLines>()
  const [deleted, tally] = [await deletedIds(world), { found: 0, unreadable: 0, left: 0 }]
  let [waiting, gone] = [0, 0]
  for await (const text of lines) {
    const line = parseCheckpointLine(text)
    if (line === 'unreadable') tally.unreadable++
    if (line === null || line === 'unreadable') continue
    tally.found++
    if (tenant !== undefined && line.tenantId !== tenant) continue
    let of = tenants.get(line.tenantId)
    if (of === undefined) {
      of = await TenantLines.open(world, line.tenantId, deleted)
      if (of.isGone && gone++ >= TENANTS_GONE_MAX) {
        tally.left++
        continue
      }
      tenants.set(line.tenantId, of)
    }
    if (of.add(line)) waiting++
    if (waiting < CHECKPOINT_LINES_AT_ONCE) continue
    for (const it of tenants.values()) await it.compare()
    waiting = 0
    onProgress?.(tally.found)
  }
  for (const it of tenants.values()) await it.compare()
  const compared = Array.from(tenants, ([id, it]) => [id, it.comparison] as const)
  return { tenants: new Map(compared), ...tally }
}

async function deletedIds({ store }: ComparisonWorld): Promise<ReadonlySet<string>> {
  return new Set((await store.tenants.deleted()).map((it) => it.id))
}

/** The lines of one tenant: those that wait to be compared, and the counts of the others. */
class TenantLines {
  readonly #world: ComparisonWorld
  readonly #id: string
  /** Null if the tenant is not in the database, or deleted. */
  #present: PresentTenant | null
  readonly #absence: Exclude<CheckpointComparison['tenant'], 'present'>
  #waiting: CheckpointLine[] = []
  #checkpoints = 0
  #from: number | null = null
  #to: number | null = null
  readonly #counts = { equal: 0, removed: 0, missing: 0, different: 0, restored: 0, forged: 0 }
  #mismatch: CheckpointMismatch | null = null

  static async open(
    world: ComparisonWorld,
    id: string,
    deleted: ReadonlySet<string>,
  ): Promise<TenantLines> {
    const { tenants, auditLog } = world.store
    if ((await tenants.find(id)) === null) {
      return new TenantLines(world, id, null, deleted.has(id) ? 'deleted' : 'gone')
    }
    const present = await unlessUnreadable(world, async () => {
      return { keys: await world.keyring.open(id), state: await auditLog.state(id) }
    })
    return new TenantLines(world, id, present, 'unreadable')
  }

  private constructor(
    world: ComparisonWorld,
    id: string,
    present: PresentTenant | null,
    absence: Exclude<CheckpointComparison['tenant'], 'present'>,
  ) {
    this.#world = world
    this.#id = id
    this.#present = present
    this.#absence = absence
  }

  get isGone(): boolean {
    return this.#present === null && this.#absence === 'gone'
  }

  get comparison(): CheckpointComparison {
    return {
      tenantId: this.#id,
      tenant: this.#present !== null ? 'present' : this.#absence,
      checkpoints: this.#checkpoints,
      from: this.#from,
      to: this.#to,
      ...this.#counts,
      mismatch: this.#mismatch,
    }
  }

  /** Returns whether the line waits to be compared. */
  add(line: CheckpointLine): boolean {
    if (this.#present !== null && !isGenuineLine(this.#present.keys, line)) {
      this.#counts.forged++
      return false
    }
    this.#checkpoints++
    this.#from = Math.min(line.at, this.#from ?? line.at)
    this.#to = Math.max(line.at, this.#to ?? line.at)
    if (this.#present === null) return false
    this.#waiting.push(line)
    return true
  }

  /** Compares the lines that wait, in the order of their events. */
  async compare(): Promise<void> {
    const lines = this.#waiting.toSorted((a, b) => a.number - b.number)
    this.#waiting = []
    const { auditLog } = this.#world.store
    const state = this.#present?.state ?? null
    const slice = new TimeSlice(this.#world.clock)
    let next = 0
    while (next < lines.length) {
      const { number: first } = lines[next]!
      let end = next
      while (end < lines.length && lines[end]!.number < first + AUDIT_EVENTS_AT_ONCE) end++
      const chunk = lines.slice(next, end)
      const count = chunk.at(-1)!.number - first + 1
      const isRead = state !== null && first <= state.last.number && first > 0
      const rows = isRead
        ? await unlessUnreadable(this.#world, () => auditLog.rowsAfter(this.#id, first - 1, count))
        : []
      if (rows === null) {
        this.#present = null
        return
      }
      const hashes = new Map(rows.map((it) => [it.number, hexOf(it.hash)]))
      for (const it of chunk) this.#note(it, state, hashes.get(it.number) ?? null)
      next = end
      await slice.yieldIfDue()
    }
  }

  /** `hash` is that of the event with the line's number; null if there is none. */
  #note(line: CheckpointLine, state: AuditLogState | null, hash: string | null): void {
    const removed = state?.removed ?? null
    if (removed !== null && line.number < removed.number) {
      this.#counts.removed++
      return
    }
    const found = line.number === removed?.number ? hexOf(removed.hash) : hash
    if (found === null) this.#mismatched(line, 'missing')
    else if (found !== line.hash) this.#mismatched(line, 'different')
    else if (line.removed > removed!.number) this.#mismatched(line, 'restored')
    else this.#counts.equal++
  }

  #mismatched({ number, at }: CheckpointLine, what: CheckpointMismatch['what']): void {
    this.#counts[what]++
    if (this.#mismatch !== null && this.#mismatch.number <= number) return
    this.#mismatch = { number, what, at }
  }
}

interface PresentTenant {
  readonly keys: TenantKeys
  readonly state: AuditLogState | null
}

/** Returns null if an attacker made unreadable what `read` reads; rejects if the store is gone. */
async function unlessUnreadable<Value>(
  { store }: ComparisonWorld,
  read: () => Promise<Value>,
): Promise<Value | null> {
  try {
    return await read()
  } catch {
    await store.tenants.deleted()
    return null
  }
}

function hexOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex')
}

/** A file of lines with random tenants must not fill the memory. */
const TENANTS_GONE_MAX = 1_000

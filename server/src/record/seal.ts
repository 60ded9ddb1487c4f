/**
 * The seal of a record: what the tenant's keys say about its chain, about once a second.
 *
 * The chain alone would not stop somebody who can write to the database: they could change an entry and work
 * out every later hash anew. What is sealed they cannot. A seal is made only on top of the one before, so
 * that nobody can have the service seal what they made up. Decision 0020.
 */
import { RECORD_UNSEALED_MS_MAX } from '../base/limits.ts'
import {
  timeOfEntry,
  type RecordPoint,
  type RecordSeal,
  type StoredRecordRow,
} from '../world/record.ts'
import type { RecordState } from '../world/store.ts'
import type { World } from '../world/world.ts'

type Reach = Pick<World, 'clock' | 'keyring' | 'log' | 'store'>

/**
 * Returns a function that seals every record that has entries after its seal.
 *
 * What cannot be sealed is left as it is, and logged once.
 */
export function recordSealer(world: Reach): () => Promise<void> {
  const reported = new Set<string>()
  return async () => {
    for (const tenantId of await world.store.record.tenantIds('unsealed')) {
      try {
        await sealRecord(world, tenantId)
        reported.delete(tenantId)
      } catch (error) {
        if (!reported.has(tenantId)) world.log.error('record_unsealed', error, { tenant: tenantId })
        reported.add(tenantId)
      }
    }
  }
}

async function sealRecord(world: Reach, tenantId: string): Promise<void> {
  // Nobody can seal for a tenant that was deleted: its keys are gone.
  if ((await world.store.tenants.find(tenantId)) === null) return
  const state = await world.store.record.state(tenantId)
  if (state === null) return
  const seal = await nextSeal(world, tenantId, state, state.removed)
  await world.store.commit(tenantId, [{ kind: 'seal-record', seal }])
}

/**
 * Returns a seal over what `state` says, with `removed` as the last entry that is gone.
 *
 * Throws when the seal before is not genuine or the record does not continue it.
 */
export async function nextSeal(
  world: Pick<World, 'clock' | 'keyring' | 'store'>,
  tenantId: string,
  { removed: before, last, seal }: RecordState,
  removed: RecordPoint,
): Promise<RecordSeal> {
  const keys = await world.keyring.open(tenantId)
  if (seal === null) {
    const [first] = await world.store.record.rowsAfter(tenantId, 0, 1)
    if (!isBeginning(tenantId, first)) throw new Error('Cannot seal the record: its seal is gone')
  } else {
    if (!keys.attests(statementOf(tenantId, seal), seal.proof)) {
      throw new Error('Cannot seal the record: its seal is not ours')
    }
    const { number } = seal.last
    const sealed =
      number === before.number
        ? before
        : (await world.store.record.rowsAfter(tenantId, number - 1, 1))[0]
    if (!isSame(before, seal.removed) || !isSame(sealed, seal.last)) {
      throw new Error('Cannot seal the record: it does not continue what was sealed')
    }
  }
  const next = { removed, last, at: world.clock.now() }
  return { ...next, proof: keys.attest(statementOf(tenantId, next)) }
}

/** Returns what the proof of a seal is about. */
export function statementOf(
  tenantId: string,
  { removed, last, at }: Omit<RecordSeal, 'proof'>,
): string[] {
  return ['record', tenantId, ...textsOf(removed), ...textsOf(last), String(at)]
}

function textsOf({ number, listed, hash }: RecordPoint): string[] {
  return [String(number), String(listed), Buffer.from(hash).toString('hex')]
}

export function isSame(a: RecordPoint | undefined, b: RecordPoint): boolean {
  return (
    a !== undefined &&
    a.number === b.number &&
    a.listed === b.listed &&
    Buffer.compare(a.hash, b.hash) === 0
  )
}

/**
 * Whether the entry is the first of a tenant that has just been made.
 *
 * When that was is in the tenant's id, which is part of everything the tenant has sealed and so cannot be
 * another: a record that was thrown away and begun anew does not pass.
 */
export function isBeginning(tenantId: string, first: StoredRecordRow | undefined): boolean {
  if (first?.number !== 1) return false
  const madeAt = Number.parseInt(tenantId.slice(0, 8) + tenantId.slice(9, 13), 16)
  return Math.abs(timeOfEntry(first.entry) - madeAt) <= RECORD_UNSEALED_MS_MAX
}

/** Decrypts every value of a vault, to find damaged ones before a request needs them. Changes nothing. */
import { TimeSlice, type SliceClock } from '../base/time-slice.ts'
import type { ValueKind, ValueName } from '../ports/unreadable-value.ts'
import { sealContextOf } from '../key-rotation/seal-context.ts'
import { UnreadableKey } from '../ports/key-provider.ts'
import {
  UnreadableEnvelope,
  type KeyRepair,
  type Keyring,
  type TenantKeys,
  type WrappedTenantKey,
} from '../ports/keyring.ts'
import type { EnvelopeStretch, Envelopes, TenantReader } from '../ports/store.ts'
import { ENTITIES, ENVELOPE_TABLES, SEALED_NAMES } from '../ports/store/entities.ts'
import { encryptedColumnsOf } from '../ports/store/entity-columns.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../ports/stored.ts'

/** The parts of a vault that a verification reads. */
export interface ReadableVault {
  readonly clock: SliceClock
  readonly keyring: Pick<Keyring, 'open'> & Pick<KeyRepair, 'isReadable'>
  readonly store: { readonly tenants: Pick<TenantReader, 'ids' | 'find' | 'keys' | 'envelopes'> }
}

export interface VerifyOptions {
  /** All values, or the first values of each table. */
  readonly depth: 'all' | 'samples'
  /** Only this tenant. */
  readonly tenantId?: string | undefined
  /** The `next` of the last step of an interrupted run. */
  readonly from?: VerifyPoint | undefined
}

/** A tenant, and the end of the last chunk read of it; null before the first. Tenants are verified in the order of their ids. */
export interface VerifyPoint {
  readonly tenantId: string
  readonly after: EnvelopeCursor | null
}

/** A chunk of values that were decrypted. */
export interface VerifyStep {
  /** The number of values, damaged ones included. */
  readonly values: number
  readonly damaged: readonly DamagedValue[]
  readonly next: VerifyPoint
}

export interface DamagedValue extends ValueName {
  readonly tenantId: string
  /** The value: an envelope, or a version of a tenant key. */
  readonly stored: StoredEnvelope | WrappedTenantKey
}

/**
 * Yields after each chunk. Other processes may write meanwhile: an envelope that does not open is read a second time, because it or
 * its key may just have been replaced.
 */
export async function* verifyValues(
  vault: ReadableVault,
  { depth, tenantId, from }: VerifyOptions,
): AsyncIterable<VerifyStep> {
  const all = tenantId === undefined ? await vault.store.tenants.ids() : [tenantId]
  for (const id of all.toSorted()) {
    if (from !== undefined && id < from.tenantId) continue
    yield* verifyTenant(vault, id, depth, id === from?.tenantId ? from.after : null)
  }
}

async function* verifyTenant(
  vault: ReadableVault,
  tenantId: string,
  depth: VerifyOptions['depth'],
  from: EnvelopeCursor | null,
): AsyncIterable<VerifyStep> {
  if (from === null) {
    const keys = await vault.store.tenants.keys(tenantId)
    const damaged = await damagedKeys(vault, tenantId, keys)
    yield { values: keys.length, damaged, next: { tenantId, after: FIRST } }
  }
  const slice = new TimeSlice(vault.clock)
  for (let after: EnvelopeCursor | null = from ?? FIRST; after !== null;) {
    const chunk: Envelopes = await chunkAfter(vault, tenantId, after)
    const damaged = await damagedEnvelopes(vault, tenantId, after, chunk.found)
    const next: EnvelopeCursor | null = depth === 'all' ? chunk.next : tableAfter(after)
    yield { values: chunk.found.length, damaged, next: { tenantId, after: next ?? LAST } }
    after = next
    await slice.yieldIfDue()
  }
}

async function damagedKeys(
  { keyring }: ReadableVault,
  tenantId: string,
  keys: readonly WrappedTenantKey[],
): Promise<DamagedValue[]> {
  const damaged: DamagedValue[] = []
  for (const stored of keys) {
    if (await keyring.isReadable(tenantId, stored)) continue
    damaged.push({
      tenantId,
      kind: 'tenant_key',
      id: `${stored.purpose}/${stored.version}`,
      stored,
    })
  }
  return damaged
}

async function damagedEnvelopes(
  vault: ReadableVault,
  tenantId: string,
  after: EnvelopeCursor,
  found: readonly StoredEnvelope[],
): Promise<DamagedValue[]> {
  const suspects = found.length === 0 ? [] : unreadableAmong(await openKeys(vault, tenantId), found)
  if (suspects.length === 0) return []
  const stillThere = await readAgain(vault, tenantId, after, suspects)
  return unreadableAmong(await openKeys(vault, tenantId), stillThere).map((stored) => {
    return { tenantId, kind: kindOf(stored), id: stored.row, stored }
  })
}

/** Reads some of the envelopes after `after` again. Rows inserted meanwhile may have moved them to later chunks. */
async function readAgain(
  vault: ReadableVault,
  tenantId: string,
  after: EnvelopeCursor,
  wanted: readonly StoredEnvelope[],
): Promise<StoredEnvelope[]> {
  const missing = new Set(wanted.map(rowAndPartOf))
  const found: StoredEnvelope[] = []
  let from: EnvelopeCursor | null = after
  for (let chunks = 0; chunks < CHUNKS_READ_AGAIN_MAX && missing.size > 0; chunks++) {
    if (from?.table !== after.table) break
    const chunk: Envelopes = await chunkAfter(vault, tenantId, from)
    found.push(...chunk.found.filter((it) => missing.delete(rowAndPartOf(it))))
    from = chunk.next
  }
  return found
}

/** Returns null if none of the tenant's keys, and so none of its values, is readable. */
async function openKeys(vault: ReadableVault, tenantId: string): Promise<TenantKeys | null> {
  try {
    return await vault.keyring.open(tenantId)
  } catch (error) {
    if (error instanceof UnreadableKey) return null
    // The tenant was deleted with its keys, and its values are not needed.
    if ((await vault.store.tenants.find(tenantId)) === null) return null
    throw error
  }
}

function unreadableAmong(
  keys: TenantKeys | null,
  found: readonly StoredEnvelope[],
): StoredEnvelope[] {
  return found.filter((it) => {
    try {
      if (keys === null) return true
      keys.open(sealContextOf(it), it.envelope)
      return false
    } catch (error) {
      if (error instanceof UnreadableEnvelope) return true
      throw error
    }
  })
}

function chunkAfter(
  { store }: ReadableVault,
  tenantId: string,
  after: EnvelopeCursor,
): Promise<Envelopes> {
  const stretch: EnvelopeStretch = { dataKeyId: NO_KEY_ID, after, limit: VALUES_AT_ONCE }
  return store.tenants.envelopes(tenantId, stretch)
}

function tableAfter({ table }: EnvelopeCursor): EnvelopeCursor | null {
  const following = ENVELOPE_TABLES[ENVELOPE_TABLES.indexOf(table) + 1]
  return following === undefined ? null : { table: following, row: '' }
}

function rowAndPartOf({ table, row, part }: StoredEnvelope): string {
  return `${table} ${row} ${part}`
}

function kindOf({ table, part }: StoredEnvelope): ValueKind {
  if (table === 'tokens') return part === 'cvc' ? 'security_code' : 'token_data'
  if (table === 'pending') return part === 'cvc' ? 'pending_security_code' : 'pending_token_data'
  const columns = encryptedColumnsOf(SEALED_NAMES.find((it) => ENTITIES[it].table === table)!)
  return columns.find((it) => it.encrypted!.part === part)!.encrypted!.value as ValueKind
}

const FIRST: EnvelopeCursor = { table: ENVELOPE_TABLES[0], row: '' }
/** After every row of the last table. */
const LAST: EnvelopeCursor = {
  table: ENVELOPE_TABLES.at(-1)!,
  row: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
}
/** No envelope begins with this, however damaged: a flipped bit could produce a shorter prefix. */
const NO_KEY_ID = new Uint8Array(64).fill(0xff)
const VALUES_AT_ONCE = 1000
/** A suspect that is in none of them was deleted. */
const CHUNKS_READ_AGAIN_MAX = 10

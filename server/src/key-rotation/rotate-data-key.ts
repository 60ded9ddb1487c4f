/** Rotates a tenant's data key: re-seals every envelope under a new version, then destroys the old one. Decision 0037. */
import { ENVELOPE_ROWS_AT_ONCE, KEY_ANNOUNCED_LOOK_MS, KEY_RETIREMENT_MS } from '../base/limits.ts'
import { TimeSlice } from '../base/time-slice.ts'
import type { KeyMaker, RenewingKeys } from '../ports/keyring.ts'
import { isUnderOlderKey } from '../ports/retired-keys.ts'
import type { Change, RenewedEnvelope } from '../ports/change.ts'
import type { Envelopes, Store } from '../ports/store.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../ports/stored.ts'
import { rejectAsOutage } from '../ports/store-outage.ts'
import type { World } from '../ports/world.ts'
import { sealContextOf } from './seal-context.ts'
import { tokenCountOf } from './token-count.ts'

type Tenants = { readonly store: Pick<Store, 'tenants'> }

export interface RotationOptions {
  readonly maker: KeyMaker
  /** Waits; rejects when the rotation is to stop. */
  readonly pause: (ms: number) => Promise<void>
  readonly report: (progress: RotationProgress) => void
  /** Overrides KEY_RETIREMENT_MS. For tests. */
  readonly retirementMs?: number
}

export interface RotationProgress {
  readonly tenantId: string
  /** The key version to seal everything under. */
  readonly version: number
  /** Rows not examined yet: at least as many as are still under an older version. */
  readonly left: number
}

/**
 * Gives the tenant a new version of its data key, or continues an interrupted rotation, which may have begun on another server
 * and may still run there.
 *
 * New values are sealed under it as soon as every server knows it. When this resolves no envelope is under an older version, and
 * those versions are gone. Callers notice nothing: every envelope can be opened throughout, and work is done in short chunks.
 * Rejects, with the older versions kept, if an envelope does not open, and with `store_unavailable` if the store does not answer:
 * called again, it continues.
 */
export async function rotateDataKey(
  world: Pick<World, 'clock' | 'log' | 'store'>,
  tenantId: string,
  options: RotationOptions,
): Promise<void> {
  try {
    const version = await newestVersion(world, tenantId, options.maker)
    if (version !== null) await rotateTo(version, world, tenantId, options)
  } catch (error) {
    // The keys of a tenant that was deleted meanwhile are gone, and with them the need to rotate.
    if ((await world.store.tenants.find(tenantId)) !== null) throw error
  }
}

async function rotateTo(
  version: number,
  world: Pick<World, 'clock' | 'log' | 'store'>,
  tenantId: string,
  options: RotationOptions,
): Promise<void> {
  let left = await tokenCountOf(world, tenantId)
  const reportProgress = (): void => options.report({ tenantId, version, left })
  world.log.info('key_rotation', { tenant: tenantId, version, left })
  reportProgress()

  let keys = await options.maker.reread(tenantId)
  while (keys.version < version) {
    // The version is new: other servers must know it before any seals under it.
    await options.pause(KEY_ANNOUNCED_LOOK_MS)
    keys = await options.maker.reread(tenantId)
  }
  do {
    // Another server finished first, and has begun with the next version.
    if ((await options.maker.reread(tenantId)).version > version) return
    await renewAll()
  } while (!(await rested()))
  await commit({ kind: 'retire-data-keys', before: keys.dataKeyId })
  // No envelope under an old key can be committed any more. But a pending change becomes a token when its transaction is
  // committed, perhaps in rows the first pass has covered already: the second finds it.
  await renewAll()
  await renewAll()
  left = 0
  reportProgress()

  await commit({ kind: 'destroy-tenant-keys', below: version })
  await options.maker.reread(tenantId)
  world.log.info('key_rotated', { tenant: tenantId, version })

  async function renewAll(): Promise<void> {
    let committed: Promise<unknown> = Promise.resolve()
    for await (const { found, looked } of behind(world, tenantId, keys)) {
      const envelopes = renewed(keys, found)
      await committed
      // The next chunk is read and sealed while the disk writes this one.
      committed = renew(envelopes)
      committed.catch(() => {})
      left = Math.max(0, left - looked)
      reportProgress()
      await options.pause(0)
    }
    await committed
  }

  async function renew(envelopes: readonly RenewedEnvelope[]): Promise<void> {
    if (envelopes.length > 0) await commit({ kind: 'renew-envelopes', envelopes })
  }

  async function commit(change: Change): Promise<void> {
    await world.store.commit(tenantId, [change]).catch(rejectAsOutage)
  }

  /**
   * Resolves with whether no envelope is left under an old key, after a wait long enough for all requests that sealed under one
   * to have committed.
   */
  async function rested(): Promise<boolean> {
    await options.pause(options.retirementMs ?? KEY_RETIREMENT_MS)
    // Waits until all writes issued before are on disk.
    await world.store.check()
    for await (const { found } of behind(world, tenantId, keys)) if (found.length > 0) return false
    return true
  }
}

/** Returns the tenants whose rotation was begun and not finished. */
export async function unfinishedRotations(world: Tenants): Promise<string[]> {
  const unfinished: string[] = []
  for (const id of await world.store.tenants.ids()) {
    if (await isRotationUnfinished(world, id)) unfinished.push(id)
  }
  return unfinished
}

/** Whether a rotation of the tenant's data key has begun and not ended. */
export async function isRotationUnfinished(world: Tenants, tenantId: string): Promise<boolean> {
  return (await dataKeyVersions(world, tenantId)).length > 1
}

/** Returns the version to rotate to, made unless there is one already; null if the tenant is gone. */
async function newestVersion(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  maker: KeyMaker,
): Promise<number | null> {
  for (;;) {
    const versions = await dataKeyVersions(world, tenantId)
    if (versions.length === 0) return null
    const newest = Math.max(...versions)
    if (versions.length > 1) return newest
    await requireRootKey(world, maker.rootKey)
    const id = maker.rootKey
    const key = await maker.next(tenantId, newest + 1, world.clock.now())
    const made = { kind: 'insert', entity: 'tenant_key', row: key } as const
    await world.store
      .commit(tenantId, [{ kind: 'require-root-key', id }, made])
      .catch(rejectAsOutage)
    // We or another server made it; or the tenant is gone, or the root key changed.
  }
}

/** Rejects unless the root key of this id is installed: keys wrapped by another would be useless. */
async function requireRootKey({ store }: Tenants, id: string): Promise<void> {
  const installed = await store.tenants.rootKeyCheck()
  if (installed?.id === id) return
  throw new Error(
    `Cannot make a key: the root key is ${installed?.id ?? 'none'}, but this server was started with ${id}; ` +
      'start it with the other one',
  )
}

async function dataKeyVersions(world: Tenants, tenantId: string): Promise<number[]> {
  const keys = await world.store.tenants.keys(tenantId)
  return keys.filter((it) => it.purpose === 'enc').map((it) => it.version)
}

/** Yields all envelopes that are not under the newest key, chunk by chunk, and yields to other work in between. */
async function* behind(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { dataKeyId }: RenewingKeys,
): AsyncIterable<Envelopes> {
  const slice = new TimeSlice(world.clock)
  let limit = ENVELOPE_ROWS_AT_ONCE
  let after: EnvelopeCursor | null = null
  do {
    const stretch: Envelopes = await world.store.tenants.envelopes(tenantId, {
      dataKeyId,
      after,
      limit,
    })
    yield stretch
    after = stretch.next
    // Rows rotated before cost less, so more of them are read at a time.
    limit = ENVELOPE_ROWS_AT_ONCE * (stretch.found.length === 0 ? SKIPPED_FACTOR : 1)
    await slice.yieldIfDue()
  } while (after !== null)
}

function renewed(keys: RenewingKeys, found: readonly StoredEnvelope[]): RenewedEnvelope[] {
  return found.flatMap((it) => {
    try {
      const renewed = keys.renew(sealContextOf(it), it.envelope)
      // An envelope under a later key that opens is left to the server that made that key.
      return isUnderOlderKey(it.envelope, keys.dataKeyId) ? [{ ...it, renewed }] : []
    } catch (cause) {
      throw new Error(
        `Cannot rotate: something among the ${it.table} does not open, and its key is kept; ` +
          `it is in row ${it.row}`,
        { cause },
      )
    }
  })
}

const SKIPPED_FACTOR = 8

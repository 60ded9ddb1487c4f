/**
 * A new data key for a tenant: everything sealed under the one before is sealed anew, and then that is
 * destroyed. Decision 0037.
 */
import { ENVELOPE_ROWS_AT_ONCE, KEY_ANNOUNCED_LOOK_MS, KEY_RETIREMENT_MS } from '../base/limits.ts'
import type { KeyMaker, RenewingKeys } from '../ports/keyring.ts'
import { isUnderOlderKey } from '../ports/retired-keys.ts'
import type { RenewedEnvelope } from '../ports/change.ts'
import type { Envelopes, Store } from '../ports/store.ts'
import type { EnvelopeCursor, StoredEnvelope } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { sealContextOf } from './seal-context.ts'
import { tokenCountOf } from './token-count.ts'

type Tenants = { readonly store: Pick<Store, 'tenants'> }

export interface RotationOptions {
  readonly maker: KeyMaker
  /** Lets time pass; rejects when there is to be no going on. */
  readonly pause: (ms: number) => Promise<void>
  readonly tell: (progress: RotationProgress) => void
  /** Instead of KEY_RETIREMENT_MS. For tests. */
  readonly retirementMs?: number
}

export interface RotationProgress {
  readonly tenantId: string
  /** Which version everything is to be sealed under. */
  readonly version: number
  /** Rows that have not been looked through yet: at least as many as are still under an older one. */
  readonly left: number
}

/**
 * Gives the tenant a new version of its data key, or goes on where somebody was interrupted in it, here or on another
 * server, which may still be at it.
 *
 * New values are sealed under it as soon as every server knows it. When this resolves nothing is sealed under an older
 * version, and those are gone. Callers notice nothing: what is read opens at any time, and work is done in short
 * chunks. Rejects, with the older versions kept, when an envelope does not open.
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
    // Of a tenant that was deleted meanwhile the keys are gone, and with them what there was to do.
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
  const tell = (): void => options.tell({ tenantId, version, left })
  world.log.info('key_rotation', { tenant: tenantId, version, left })
  tell()

  let keys = await options.maker.reread(tenantId)
  while (keys.version < version) {
    // Made just now: others have to know it before anybody seals under it.
    await options.pause(KEY_ANNOUNCED_LOOK_MS)
    keys = await options.maker.reread(tenantId)
  }
  do {
    // Another server was quicker, and has begun with the next.
    if ((await options.maker.reread(tenantId)).version > version) return
    await renewAll()
  } while (!(await rested()))
  await world.store.commit(tenantId, [{ kind: 'retire-data-keys', before: keys.dataKeyId }])
  // Nothing can come any more. But what waits for a transaction becomes a token when that is committed,
  // perhaps where the first walk has been already: the second finds it.
  await renewAll()
  await renewAll()
  left = 0
  tell()

  await world.store.commit(tenantId, [{ kind: 'destroy-tenant-keys', below: version }])
  await options.maker.reread(tenantId)
  world.log.info('key_rotated', { tenant: tenantId, version })

  async function renewAll(): Promise<void> {
    let committed: Promise<unknown> = Promise.resolve()
    for await (const { found, looked } of behind(world, tenantId, keys)) {
      const envelopes = renewed(keys, found)
      await committed
      // The next stretch is read and sealed while the disk is busy with this one.
      committed = commit(envelopes)
      committed.catch(() => {})
      left = Math.max(0, left - looked)
      tell()
      await options.pause(0)
    }
    await committed
  }

  async function commit(envelopes: readonly RenewedEnvelope[]): Promise<void> {
    if (envelopes.length === 0) return
    await world.store.commit(tenantId, [{ kind: 'renew-envelopes', envelopes }])
  }

  /** Nobody is under way with what was sealed under the key before, as far as time tells, and there is nothing left. */
  async function rested(): Promise<boolean> {
    await options.pause(options.retirementMs ?? KEY_RETIREMENT_MS)
    // What was handed to the disk before this is on it afterwards.
    await world.store.check()
    for await (const { found } of behind(world, tenantId, keys)) if (found.length > 0) return false
    return true
  }
}

/** Tenants whose rotation was begun and not finished. */
export async function unfinishedRotations(world: Tenants): Promise<string[]> {
  const unfinished: string[] = []
  for (const id of await world.store.tenants.ids()) {
    if ((await dataKeyVersions(world, id)).length > 1) unfinished.push(id)
  }
  return unfinished
}

/** Returns the version to be rotated to, made unless there is one already; null when the tenant is gone. */
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
    const made = { kind: 'insert-tenant-key', key } as const
    await world.store.commit(tenantId, [{ kind: 'require-root-key', id }, made])
    // Made by us, or by somebody who was quicker; or the tenant is gone, or the root key another.
  }
}

/** Rejects when keys that are wrapped by the root key of this name would be of no use. */
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

/** Everything that is not sealed under the newest key, a stretch at a time, with others' work between. */
async function* behind(
  world: Pick<World, 'clock' | 'store'>,
  tenantId: string,
  { dataKeyId: head }: RenewingKeys,
): AsyncIterable<Envelopes> {
  let limit = ENVELOPE_ROWS_AT_ONCE
  let after: EnvelopeCursor | null = null
  do {
    const stretch: Envelopes = await world.store.tenants.envelopes(tenantId, {
      dataKeyId: head,
      after,
      limit,
    })
    yield stretch
    after = stretch.next
    // Where somebody has been before there is less to do for each row.
    limit = ENVELOPE_ROWS_AT_ONCE * (stretch.found.length === 0 ? SKIPPED_FACTOR : 1)
    await world.clock.yield()
  } while (after !== null)
}

function renewed(keys: RenewingKeys, found: readonly StoredEnvelope[]): RenewedEnvelope[] {
  return found.flatMap((it) => {
    try {
      const renewed = keys.renew(sealContextOf(it), it.envelope)
      // What is sealed under a later key, and opens, is left to whoever made that.
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

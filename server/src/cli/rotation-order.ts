import type { RotationProgress } from '../key-rotation/rotate-data-key.ts'
import { rotateRootKey } from '../key-rotation/rotate-root-key.ts'
import type { OpenWorld } from './open-world.ts'
import type { Rotations } from './rotations.ts'
import { requireHeldByServers } from './server-notices.ts'

/** The order that `symbolon keys rotate` sends to the service. */
export interface RotationOrder {
  readonly rotate: 'root' | 'tenants'
  /** With `root`, the id of the new root key; with `tenants`, one tenant's id, or null for all. */
  readonly which: string | null
}

export type RotationNews =
  | { readonly rootKey: string; readonly wrapped: number }
  | RotationProgress
  | { readonly tenantId: string; readonly rotated: true }

type RotatingWorld = Pick<OpenWorld, 'world' | 'keyProvider' | 'keyMaker' | 'reopenRootKeys'>

/** Parses an order from a line of JSON; returns null if it is invalid. */
export function parseRotationOrder(order: unknown): RotationOrder | null {
  if (typeof order !== 'object' || order === null) return null
  const { rotate, which } = order as Partial<Record<keyof RotationOrder, unknown>>
  const known = rotate === 'root' || rotate === 'tenants' ? rotate : null
  if (known === null || (typeof which !== 'string' && which !== null)) return null
  return { rotate: known, which }
}

/** Executes an order in the process that owns the store, and reports its progress. */
export async function executeRotationOrder(
  opened: RotatingWorld,
  rotations: Rotations,
  { rotate, which }: RotationOrder,
  report: (news: RotationNews) => void,
): Promise<void> {
  if (rotate === 'root') {
    await replaceRootKey(opened, which ?? '', report)
    return
  }
  const installed = await opened.world.store.tenants.rootKeyCheck()
  // Another server may have replaced it.
  if (installed !== null) opened.keyProvider.follow(installed.id)
  const tenants = await opened.world.store.tenants.ids()
  if (which !== null && !tenants.includes(which)) throw new Error(`There is no tenant ${which}`)
  await rotations.rotateAll(which === null ? tenants : [which], report, (tenantId) =>
    report({ tenantId, rotated: true }),
  )
}

async function replaceRootKey(
  opened: RotatingWorld,
  id: string,
  report: (news: RotationNews) => void,
): Promise<void> {
  const { world, keyProvider, keyMaker } = opened
  const next = keyProvider.find(id)
  if (next === undefined) {
    throw new Error(
      `Cannot replace the root key: the service was started without root key ${id}. Set SYMBOLON_ROOT_KEY_NEXT_FILE ` +
        'to the file of that key for each server, restart each, and run this command again',
    )
  }
  await requireNextStart(opened, id)
  await requireHeldByServers(world, id)
  // Both keys are held: if the outcome of the commit is unknown, either may be the right one.
  const wrapped = await rotateRootKey(world, keyMaker, next)
  keyProvider.turnTo(next)
  world.log.info('root_key_replaced', { key: next.id, wrapped })
  report({ rootKey: next.id, wrapped })
}

/** Throws unless a start with the present settings would find the root key: its file may have changed since the last start. */
async function requireNextStart(
  { reopenRootKeys }: Pick<OpenWorld, 'reopenRootKeys'>,
  id: string,
): Promise<void> {
  const refusal = 'Cannot replace the root key: the next start of the service would fail'
  const reopened = await reopenRootKeys().catch((cause: unknown) => {
    // The message holds the whole reason, since the command receives nothing else.
    throw new Error(`${refusal}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  })
  if (reopened.find(id) !== undefined) return
  throw new Error(
    `${refusal}: neither SYMBOLON_ROOT_KEY_FILE nor SYMBOLON_ROOT_KEY_NEXT_FILE, as the service has them, names a ` +
      `file with root key ${id} any more. Put it back, restart the service and run this command again`,
  )
}

import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import type { RotationProgress } from '../key-rotation/rotate-data-key.ts'
import { rotateRootKey } from '../key-rotation/rotate-root-key.ts'
import type { OpenWorld } from './open-world.ts'
import type { Rotations } from './rotations.ts'

/** The order that `symbolon keys rotate` sends to the service. */
export interface RotationOrder {
  readonly rotate: 'root' | 'tenants'
  /** With `root`, the file of the new root key; with `tenants`, one tenant's id, or null for all. */
  readonly which: string | null
}

export type RotationNews =
  | { readonly rootKey: string; readonly wrapped: number }
  | RotationProgress
  | { readonly tenantId: string; readonly rotated: true }

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
  opened: Pick<OpenWorld, 'world' | 'keyProvider' | 'keyMaker'>,
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
  { world, keyProvider, keyMaker }: Pick<OpenWorld, 'world' | 'keyProvider' | 'keyMaker'>,
  file: string,
  report: (news: RotationNews) => void,
): Promise<void> {
  const next = await FileKeyProvider.open(file, { createIfMissing: false })
  // Accepted before the commit: if its outcome is unknown, either key may be the right one.
  keyProvider.accept(next)
  const wrapped = await rotateRootKey(world, keyMaker, next)
  keyProvider.turnTo(next)
  world.log.info('root_key_replaced', { key: next.id, wrapped })
  report({ rootKey: next.id, wrapped })
}

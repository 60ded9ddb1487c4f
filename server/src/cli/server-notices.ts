import { hostname } from 'node:os'
import { checkRootKey } from '../access/root-key-check.ts'
import { ID_RANDOM_BYTES, idOf } from '../base/id.ts'
import { NOTICES_MS, SERVER_FORGOTTEN_MS, SERVER_NOTICE_KEPT_MS } from '../base/limits.ts'
import type { StoredNotice } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import type { OpenWorld } from './open-world.ts'

/** A server's notice about itself, for servers that share its database. */
export interface ServerNotice {
  /** Host name and process id. */
  readonly name: string
  /** Ids of the root keys that it holds. */
  readonly rootKeys: readonly string[]
}

/**
 * Announces to servers that share the database the root keys that this one holds: at once, and every NOTICES_MS until the returned
 * function is called. Rejects if the root key in use is no longer among them. Decision 0072.
 */
export async function announceServer({
  world,
  keyProvider,
}: Pick<OpenWorld, 'world' | 'keyProvider'>): Promise<() => Promise<void>> {
  const id = idOf(world.clock.now(), world.random.bytes(ID_RANDOM_BYTES))
  const rootKeys = keyProvider.all().map((it) => it.id)
  const text = JSON.stringify({ kind: SERVER, name: `${hostname()} (${process.pid})`, rootKeys })
  const announce = (): Promise<void> => {
    const notice = { text, at: world.clock.now() }
    return commitNotice(world, { kind: 'put-notice', id, notice })
  }
  await announce()
  await removeOld(world)
  // The root key may have been replaced just before this notice was committed: then this start must fail.
  const installed = await world.store.tenants.rootKeyCheck()
  if (installed !== null) keyProvider.follow(installed.id)
  await checkRootKey(world.store, keyProvider)
  // A failure means that the store cannot be written, which is reported elsewhere; the next attempt follows.
  const timer = setInterval(() => void announce().catch(() => {}), NOTICES_MS)
  return async () => {
    clearInterval(timer)
    await commitNotice(world, { kind: 'put-notice', id, notice: null }).catch(() => {})
  }
}

/** Removes the notices of servers that were killed. */
async function removeOld(world: Pick<World, 'clock' | 'store'>): Promise<void> {
  const before = world.clock.now() - SERVER_NOTICE_KEPT_MS
  for (const it of await world.store.tenants.notices()) {
    if (it.at >= before || parseServerNotice(it) === null) continue
    await commitNotice(world, { kind: 'put-notice', id: it.id, notice: null })
  }
}

/** Throws unless every recently announced server holds the root key: a server without it would fail at its next start. */
export async function requireHeldByServers(
  { clock, store }: Pick<World, 'clock' | 'store'>,
  rootKeyId: string,
): Promise<void> {
  const now = clock.now()
  const lacking = (await store.tenants.notices())
    .filter(({ at }) => at > now - SERVER_FORGOTTEN_MS)
    .map(parseServerNotice)
    .filter((it) => it !== null)
    .filter((it) => !it.rootKeys.includes(rootKeyId))
  if (lacking.length === 0) return
  const names = lacking.map((it) => it.name).join(', ')
  throw new Error(
    `Cannot replace the root key: these servers were started without root key ${rootKeyId}: ${names}. Set ` +
      'SYMBOLON_ROOT_KEY_NEXT_FILE to the file of that key for each server, restart each, and run this command again; a ' +
      `server that was killed counts as running for ${SERVER_FORGOTTEN_MS / 1000} seconds`,
  )
}

/** Returns null if the notice is not a server's. */
export function parseServerNotice({ text }: Pick<StoredNotice, 'text'>): ServerNotice | null {
  let notice: Partial<Record<string, unknown>>
  try {
    notice = Object(JSON.parse(text))
  } catch {
    return null
  }
  const { kind, name, rootKeys } = notice
  if (kind !== SERVER || typeof name !== 'string' || !Array.isArray(rootKeys)) return null
  return { name, rootKeys: rootKeys.map(String) }
}

type CommittedChange = Parameters<World['store']['commit']>[1][number]

/** A notice belongs to no tenant, but a commit needs one: any will do. Without tenants there are no keys to agree on. */
async function commitNotice({ store }: Pick<World, 'store'>, change: CommittedChange) {
  const [tenantId] = await store.tenants.ids()
  if (tenantId !== undefined) await store.commit(tenantId, [change])
}

const SERVER = 'server'

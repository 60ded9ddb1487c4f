/** A vault to hold the model to: the whole service in a still world, over one store or another, or two servers on one. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setUp } from '../../src/access/applications/set-up.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { MemoryStore } from '../kit/memory-store/memory-store.ts'
import { openPatiently } from '../kit/postgres/patient-store.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { createApp } from '../../src/app.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Store } from '../../src/ports/store.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { Servers, serversAsked } from '../kit/servers.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import type { StoreName } from '../kit/test-store.ts'
import type { Method } from '../kit/still-vault.ts'
import { stillWorld, thinKeyProvider } from '../kit/still-world.ts'

export interface RealReply {
  readonly status: number
  readonly body: Json
}

/** One tenant of the vault, for one sequence of commands. */
export interface Real {
  readonly send: (
    method: Method,
    at: string,
    within: string | null,
    body?: Json,
  ) => Promise<RealReply>
  readonly now: () => number
  readonly pass: (ms: number) => void
  readonly sweep: () => Promise<void>
  /** Closes the store and opens it again, where it can be. */
  readonly restart: () => Promise<void>
}

export interface RealVault {
  readonly newTenant: () => Promise<Real>
  readonly close: () => Promise<void>
}

export const STORES = ['memory', 'sqlite', 'postgres'] as const satisfies readonly StoreName[]

export async function realVault(name: StoreName): Promise<RealVault> {
  const folder = name === 'sqlite' ? mkdtempSync(path.join(tmpdir(), 'symbolon-model-')) : null
  const url = name === 'postgres' ? await freshDatabase() : null
  let stores = await openStores()
  const still = stillWorld(stores[0])
  const keyProvider = thinKeyProvider()
  let servers = serve()
  let tenants = 0

  /** A database may be that of two servers; nothing else may. */
  async function openStores(): Promise<[Store, ...Store[]]> {
    if (url === null)
      return [folder === null ? new MemoryStore() : await SqliteStore.open({ folder })]
    const others = Array.from({ length: serversAsked() - 1 }, () => openPatiently(url))
    return [await openPatiently(url), ...(await Promise.all(others))]
  }

  function worldOver(store: Store) {
    const keyring = new LocalKeyring(keyProvider, still.random, (id) => store.tenants.keys(id))
    return { ...still, store, keyring }
  }

  function serve() {
    const settings = { ...STILL_SETTINGS, tokens: { tokensMax: 1_000, privacyShown: false } }
    const apps = stores.map((it) => createApp(worldOver(it), settings))
    return new Servers(apps, still.clock)
  }

  async function close(): Promise<void> {
    await servers.close()
    for (const it of stores) await it.close()
  }

  async function call(key: string, ...[method, at, within, body]: Parameters<Real['send']>) {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const reply = await servers.next().inject({
      method: method as 'GET',
      url: at,
      headers: {
        'bt-api-key': key,
        ...(within === null ? {} : { 'bt-transaction-id': within }),
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    const text = reply.payload
    return { status: reply.statusCode, body: text === '' ? null : (JSON.parse(text) as Json) }
  }

  return {
    newTenant: async () => {
      const options = { name: `tenant ${tenants++}`, plan: 'enterprise' } as const
      const { apiKey } = await setUp(worldOver(stores[0]), keyProvider, options)
      const made = await call(apiKey, 'POST', '/applications', null, EVERYTHING)
      assert.equal(made.status, 201)
      const key = (made.body as JsonObject)['key'] as string
      return {
        send: (...request) => call(key, ...request),
        now: () => still.clock.now(),
        pass: (ms) => still.clock.pass(ms),
        sweep: async () => {
          while (await stores[0].sweep(still.clock.now()));
        },
        restart: async () => {
          if (folder === null) return
          await close()
          stores = await openStores()
          servers = serve()
        },
      }
    },
    close: async () => {
      await close()
      if (folder !== null) rmSync(folder, { recursive: true })
    },
  }
}

const EVERYTHING: JsonObject = {
  name: 'everything',
  type: 'private',
  rules: [
    {
      priority: 1,
      container: '/',
      transform: 'reveal',
      permissions: ['token:create', 'token:read', 'token:update', 'token:delete'],
    },
  ],
}

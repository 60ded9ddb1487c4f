/**
 * A whole vault for tests: the real app and keyring over memory stores, a clock that stands still, and a
 * memory of everything that left. No socket is opened.
 */
import type { FastifyInstance } from 'fastify'
import { setUp } from '../../src/access/set-up.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { MemoryStore } from '../../src/adapters/memory/memory-store.ts'
import { createApp, type AppSettings } from '../../src/app.ts'
import type { Plan, TenantSettings } from '../../src/base/access.ts'
import { TRANSACTION_LIFETIME_MS } from '../../src/base/limits.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Store } from '../../src/world/store.ts'
import type { World } from '../../src/world/world.ts'
import { stillWorld, thinKeyProvider, type StillWorld } from './still-world.ts'

export interface StillVault {
  readonly world: StillWorld
  readonly app: FastifyInstance
  readonly tenantId: string
  /** A management key. */
  readonly managementKey: string
  /** Calls the vault as a client would. */
  readonly call: (method: Method, path: string, options?: CallOptions) => Promise<Reply>
  /** Makes an application and returns its key. */
  readonly keyFor: (application: JsonObject) => Promise<string>
  /** Adds another tenant and returns its management key. */
  readonly addTenant: (name: string, plan?: Plan) => Promise<string>
  readonly close: () => Promise<void>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export interface CallOptions {
  readonly key?: string
  readonly body?: Json
  /** Sent as it is, instead of `body`. */
  readonly rawBody?: string | Buffer
  readonly headers?: Record<string, string>
}

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  /** Throws when there is no JSON. */
  readonly json: () => JsonObject
}

export interface StillVaultOptions {
  readonly tokensMax?: number
  readonly privacyShown?: boolean
  readonly corsOrigins?: '*' | readonly string[]
  /** Of every tenant. */
  readonly settings?: Partial<TenantSettings>
  /** Replaces parts of the world, for example by ones that fail. */
  readonly change?: (world: StillWorld) => World
}

/** What the operator of a still vault set, unless a test says otherwise. */
export const STILL_SETTINGS: AppSettings = {
  version: '0.0.0',
  corsOrigins: '*',
  tokens: { tokensMax: 100, privacyShown: false },
  transactions: { lifetimeMs: TRANSACTION_LIFETIME_MS },
}

export async function stillVault(options: StillVaultOptions = {}): Promise<StillVault> {
  const keyProvider = thinKeyProvider()
  const still = stillWorld(settled(new MemoryStore(), options.settings))
  const keyring = new LocalKeyring(keyProvider, still.random, (id) => still.store.tenants.keys(id))
  const world: StillWorld = { ...still, keyring }
  const first = await setUp(world, keyProvider, { name: 'first', plan: 'enterprise' })
  const app = createApp(options.change?.(world) ?? world, {
    ...STILL_SETTINGS,
    corsOrigins: options.corsOrigins ?? STILL_SETTINGS.corsOrigins,
    tokens: {
      tokensMax: options.tokensMax ?? STILL_SETTINGS.tokens.tokensMax,
      privacyShown: options.privacyShown ?? STILL_SETTINGS.tokens.privacyShown,
    },
  })
  return {
    world,
    app,
    tenantId: first.tenantId,
    managementKey: first.apiKey,
    call,
    keyFor: (application) => keyFor(first.apiKey, application),
    addTenant: async (name, plan = 'enterprise') =>
      (await setUp(world, keyProvider, { name, plan })).apiKey,
    close: () => app.close(),
  }

  async function call(method: Method, path: string, request: CallOptions = {}): Promise<Reply> {
    const { key, body, rawBody, headers = {} } = request
    const payload = rawBody ?? (body === undefined ? undefined : JSON.stringify(body))
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const reply = await app.inject({
      method,
      url: path,
      headers: {
        ...(key === undefined ? {} : { 'bt-api-key': key }),
        ...(payload === undefined ? {} : { 'content-type': contentType }),
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    return {
      status: reply.statusCode,
      headers: reply.headers as Record<string, string>,
      text: reply.payload,
      json: () => reply.json<JsonObject>(),
    }
  }

  async function keyFor(managementKey: string, application: JsonObject): Promise<string> {
    const reply = await call('POST', '/applications', {
      key: managementKey,
      body: { name: 'test', type: 'private', ...application },
    })
    if (reply.status !== 201) throw new Error(`Cannot make an application: ${reply.text}`)
    return reply.json()['key'] as string
  }
}

/** A store in which every tenant has `settings`, until there is an operation to set them. */
function settled(store: Store, settings: Partial<TenantSettings> = {}): Store {
  return {
    tenants: store.tenants,
    tokens: store.tokens,
    answers: store.answers,
    transactions: store.transactions,
    sweep: (now) => store.sweep(now),
    record: store.record,
    applications: {
      ...store.applications,
      findByKeyHash: async (hash) => {
        const holder = await store.applications.findByKeyHash(hash)
        if (holder === null) return null
        const { tenant } = holder
        return { ...holder, tenant: { ...tenant, settings: { ...tenant.settings, ...settings } } }
      },
    },
    commit: (tenantId, changes) => store.commit(tenantId, changes),
    check: () => store.check(),
    close: () => store.close(),
  }
}

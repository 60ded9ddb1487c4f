/**
 * A whole vault for tests: the real app and keyring over the store of test-store.ts, with a clock that stands still and a
 * record of all output. Opens no socket. May be two servers, see servers.ts.
 */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { setUp, type TenantSetUp } from '../../src/access/applications/set-up.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { createApp, type App, type AppSettings } from '../../src/app.ts'
import type { InProcessCaller, Plan, TenantSettings } from '../../src/base/access.ts'
import { parseIpBlock } from '../../src/base/ip-address.ts'
import type { FieldBuilds } from '../../src/fields/field-builds.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { connectInProcess } from '../../src/http/connection/in-process-connections.ts'
import type { RequestLimitSettings } from '../../src/http/request-limits.ts'
import type { KeyMaker } from '../../src/ports/keyring.ts'
import type { World } from '../../src/ports/world.ts'
import type { TransactionSettings } from '../../src/transactions/transaction-settings.ts'
import type { OneServerReason } from './one-server.ts'
import { runnerAt, Servers, serversAsked } from './servers.ts'
import { STILL_SETTINGS } from './still-settings.ts'
import { otherStillWorld, stillWorld, thinKeyProvider, type StillWorld } from './still-world.ts'
import { testStore, type StoreName } from './test-store.ts'

export interface StillVault {
  /** The world of the first server. */
  readonly world: StillWorld
  /** The first server. */
  readonly app: App
  readonly servers: Servers
  /** Creates the keys that `world` opens. */
  readonly keyMaker: KeyMaker
  readonly tenantId: string
  /** A management key. */
  readonly managementKey: string
  /** Calls the vault as a client would, each time the server whose turn it is. */
  readonly call: (method: Method, path: string, options?: CallOptions) => Promise<Reply>
  /** Creates an application and returns its key. */
  readonly keyFor: (application: JsonObject) => Promise<string>
  /** Adds another tenant and returns its management key. */
  readonly addTenant: (name: string, plan?: Plan) => Promise<string>
  readonly close: () => Promise<void>
}

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export interface CallOptions {
  readonly key?: string
  readonly body?: Json
  /** Sent unchanged, instead of `body`. */
  readonly rawBody?: string | Buffer
  readonly headers?: Record<string, string>
  /** The address that the request comes from, by its connection. */
  readonly peer?: string
  /** The in-process caller; a tenant id alone stands for code of that tenant that may send anywhere. */
  readonly inProcess?: string | InProcessCaller | undefined
}

interface InjectedRequest {
  readonly method: Method
  readonly url: string
  readonly headers: Record<string, string>
  readonly remoteAddress?: string
  readonly payload?: string | Buffer
}

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  readonly bytes: Buffer
  /** Throws if there is no JSON. */
  readonly json: () => JsonObject
}

export interface StillVaultOptions {
  readonly tokensMax?: number
  readonly privacyShown?: boolean
  readonly configurationRequired?: boolean
  readonly jobStorageBytesMax?: number
  /** Guarded headers that reactors may send. */
  readonly responseHeaders?: readonly string[]
  readonly publicUrl?: string
  readonly fieldsUrl?: string
  /** Addresses and blocks. */
  readonly trustedProxies?: readonly string[]
  readonly requestLimits?: Partial<RequestLimitSettings>
  readonly fieldBuilds?: FieldBuilds
  readonly callbackRetryBaseMs?: number
  readonly corsOrigins?: '*' | readonly string[]
  readonly transactions?: Partial<TransactionSettings>
  /** Settings of every tenant. */
  readonly settings?: Partial<TenantSettings>
  /** In place of the store that the run uses. */
  readonly store?: StoreName
  /** Two servers use PostgreSQL, whatever the run uses. */
  readonly servers?: 2
  /** Why there is one server, whatever the run uses. */
  readonly oneServer?: OneServerReason
  /** Replaces parts of the world, for example by ones that fail; called for each server. */
  readonly change?: (world: StillWorld) => World
}

export async function stillVault(options: StillVaultOptions = {}): Promise<StillVault> {
  const keyProvider = thinKeyProvider()
  const count = options.servers ?? (options.oneServer === undefined ? serversAsked() : 1)
  const { store, again, close } = await testStore(options.store ?? (options.servers && 'postgres'))
  const still = stillWorld(store)
  const others = Array.from({ length: count - 1 }, again)
  const stills = [still, ...(await Promise.all(others)).map((it) => otherStillWorld(still, it))]
  const keyrings = stills.map((it) => {
    return new LocalKeyring(keyProvider, it.random, (id) => it.store.tenants.keys(id))
  })
  const keyMaker = keyrings[0]!
  const world: StillWorld = { ...still, keyring: keyMaker }
  const first = await addTenant('first', 'enterprise')
  const settings: AppSettings = {
    ...STILL_SETTINGS,
    fieldBuilds: options.fieldBuilds ?? STILL_SETTINGS.fieldBuilds,
    corsOrigins: options.corsOrigins ?? STILL_SETTINGS.corsOrigins,
    publicAddress: {
      url: options.publicUrl ?? null,
      fieldsUrl: options.fieldsUrl ?? null,
      trustedProxies: (options.trustedProxies ?? []).map((it) => parseIpBlock(it)!),
    },
    requestLimits: { ...STILL_SETTINGS.requestLimits, ...options.requestLimits },
    callbackRetryBaseMs: options.callbackRetryBaseMs ?? STILL_SETTINGS.callbackRetryBaseMs,
    transactions: { ...STILL_SETTINGS.transactions, ...options.transactions },
    tokens: {
      tokensMax: options.tokensMax ?? STILL_SETTINGS.tokens.tokensMax,
      privacyShown: options.privacyShown ?? STILL_SETTINGS.tokens.privacyShown,
    },
    reactors: {
      configurationRequired: options.configurationRequired ?? true,
      jobStorageBytesMax: options.jobStorageBytesMax ?? STILL_SETTINGS.reactors.jobStorageBytesMax,
      responseHeaders: {
        allowed: options.responseHeaders ?? [],
        origin: options.publicUrl ?? null,
      },
    },
  }
  const apps = stills.map((it, place) => {
    const own = { ...it, keyring: keyrings[place]!, runner: runnerAt(place, it.runner) }
    return createApp(options.change?.(own) ?? own, settings)
  })
  const servers = new Servers(apps, still.clock)
  return {
    world,
    app: apps[0]!,
    servers,
    keyMaker,
    tenantId: first.tenantId,
    managementKey: first.apiKey,
    call,
    keyFor: (application) => keyFor(first.apiKey, application),
    addTenant: async (name, plan = 'enterprise') => (await addTenant(name, plan)).apiKey,
    close: async () => {
      await servers.close()
      await close()
    },
  }

  async function addTenant(name: string, plan: Plan): Promise<TenantSetUp> {
    const made = await setUp(world, keyProvider, { name, plan })
    if (options.settings === undefined) return made
    const tenant = (await world.store.tenants.find(made.tenantId))!
    const settings = { ...tenant.settings, ...options.settings }
    const change = { kind: 'update', entity: 'tenant', row: { ...tenant, settings } } as const
    if ((await world.store.commit(made.tenantId, [change])) !== null) throw new Error('It is gone')
    return made
  }

  async function call(method: Method, path: string, options: CallOptions = {}): Promise<Reply> {
    const { key, body, rawBody, headers = {}, peer, inProcess } = options
    const payload = rawBody ?? (body === undefined ? undefined : JSON.stringify(body))
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const asked = {
      method,
      url: path,
      headers: {
        ...(key === undefined ? {} : { 'bt-api-key': key }),
        ...(payload === undefined ? {} : { 'content-type': contentType }),
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
      ...(peer === undefined ? {} : { remoteAddress: peer }),
    }
    if (inProcess !== undefined) return await callInProcess(inProcess, asked)
    const reply = await servers.next().inject(asked)
    return {
      status: reply.statusCode,
      headers: reply.headers as Record<string, string>,
      text: reply.payload,
      bytes: reply.rawPayload,
      json: () => reply.json<JsonObject>(),
    }
  }

  async function callInProcess(
    inProcess: string | InProcessCaller,
    asked: InjectedRequest,
  ): Promise<Reply> {
    const inProcessCaller =
      typeof inProcess === 'string' ? { tenantId: inProcess, destinations: null } : inProcess
    const { method, url, headers, payload = '' } = asked
    const app = servers.inProcess()
    await app.ready()
    const sent = request({
      method,
      path: url,
      headers: { ...headers, 'content-length': Buffer.byteLength(payload) },
      createConnection: () => connectInProcess(app, inProcessCaller),
    })
    sent.end(payload)
    const [reply] = (await once(sent, 'response')) as [IncomingMessage]
    const chunks = (await reply.toArray()) as Buffer[]
    const bytes = Buffer.concat(chunks)
    const whole = bytes.toString()
    return {
      status: reply.statusCode!,
      headers: reply.headers as Record<string, string>,
      text: whole,
      bytes,
      json: () => JSON.parse(whole) as JsonObject,
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

/**
 * One server to be measured, in a process of its own: `node subject.ts <kind> <data folder> <number> <database>`.
 *
 * Prints `{"port":..., "key":..., "samples":...}` when it listens. Kinds:
 * - `echo`: the same framework with the same body read, answering `{id}`. What cannot be beaten.
 * - `durable`: the service as it ships.
 * - `unstored`: the service with commits that keep nothing. What storage costs is the difference.
 * - `unrecorded`: the service with commits that leave out the audit log. What that costs is the difference.
 * - `slow-sync`: as shipped, with a millisecond added to every sync.
 * - `filled`: as shipped, with so many tokens in it, and samples of them.
 * - `proxying`: as shipped, and it may send to this machine.
 * - `destination`, `bare-proxy`: see bare-servers.ts.
 * - `closing-destination`: see closing-destination.ts.
 * - `recording-proxy`: see recording-proxy.ts.
 * - `reacting`: as shipped, with the jail, and two tenants.
 * - `on-postgres`: as shipped, in a database with nothing in it yet.
 * - `joining`: the same, in one that another is in already, for whose tenant it serves.
 * - `slow-sync-single`: the same with one commit a request, as if commits were not shared.
 */
import fastify from 'fastify'
import { setUp } from '../src/access/applications/set-up.ts'
import { CanonicalJsonThread } from '../src/adapters/canonical-json/canonical-json-thread.ts'
import { UndiciEgress } from '../src/adapters/egress/undici-egress.ts'
import { parseDestination } from '../src/base/destination.ts'
import { FileKeyProvider } from '../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../src/adapters/local-keyring/local-keyring.ts'
import { PostgresStore } from '../src/adapters/storage/postgres/store.ts'
import { SqliteStore } from '../src/adapters/storage/sqlite/store.ts'
import { JailRunner } from '../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../src/adapters/jail/no-way.ts'
import { NO_RUNNER } from '../src/adapters/system/no-runner.ts'
import { SystemClock } from '../src/adapters/system/system-clock.ts'
import { SystemLog } from '../src/adapters/system/system-log.ts'
import { SystemRandom } from '../src/adapters/system/system-random.ts'
import { createApp } from '../src/app.ts'
import {
  CALLBACK_PAUSE_MS,
  JOB_STORAGE_BYTES_MAX,
  TOKENIZE_TOKENS_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTIONS_OPEN_MAX,
} from '../src/base/limits.ts'
import { permissionsOf } from '../src/access/permissions.ts'
import { idOf } from '../src/base/id.ts'
import { issueKey } from '../src/access/applications/issue-key.ts'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import type { Server } from 'node:net'
import type { Store } from '../src/ports/store.ts'
import type { StoredApplication } from '../src/ports/stored.ts'
import { withCommit } from '../src/ports/with-commit.ts'
import type { World } from '../src/ports/world.ts'
import { bareProxy, destination } from './bare-servers.ts'
import { closingDestination } from './closing-destination.ts'
import { fill, type Samples } from './fill.ts'
import { recordingProxy } from './recording-proxy.ts'
import { addReactors, type Reacting } from './reacting.ts'
import { CARD } from './rows.ts'
import { NO_FIELD_BUILDS } from '../src/fields/field-builds.ts'

const [kind = 'durable', folder = './bench-data', number = '0', database = ''] =
  process.argv.slice(2)

if (kind === 'echo') await serveEcho()
else if (kind === 'destination') await serve(destination())
else if (kind === 'closing-destination') await serve(closingDestination())
else if (kind === 'bare-proxy') await serve(bareProxy(Number(number)))
else if (kind === 'recording-proxy') await serve(await recordingProxy(Number(number), folder))
else await serveVault()

async function serve(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  tell(server.address(), '')
}

async function serveEcho(): Promise<void> {
  const app = fastify()
  app.post('/tokenize', async () => ({ id: '0197a3c1-8e2f-4b1a-9c3d-5e6f7a8b9c0d' }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  tell(app.server.address(), '')
}

async function serveVault(): Promise<void> {
  const store = await openStore()
  const random = new SystemRandom()
  const clock = new SystemClock()
  const keyProvider = await FileKeyProvider.open(`${folder}/root.key`, { createIfMissing: true })
  const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
  // The log is written as in production, but discarded.
  const log = new SystemLog({ level: 'info', descriptor: openSync('/dev/null', 'w') })
  const allow = kind === 'proxying' ? [parseDestination('127.0.0.1')!] : []
  const egress = new UndiciEgress({ allow, extraAuthorities: [] })
  const runner = kind === 'reacting' ? await jail() : NO_RUNNER
  const canonicalJson = new CanonicalJsonThread()
  const world: World = { clock, random, keyring, log, store, egress, runner, canonicalJson }
  if (kind === 'joining') {
    const app = appOf(world)
    await app.listen({ host: '127.0.0.1', port: 0 })
    return tell(app.server.address(), '')
  }
  const { tenantId, apiKey } = await setUp(world, keyProvider, {
    name: 'bench',
    plan: 'enterprise',
  })
  const { key, id } = await addApplication(world, tenantId)
  const samples = kind === 'filled' ? await fill(world, tenantId, id, Number(number)) : undefined

  const app = appOf({ ...world, store: storeOf(store) })
  await app.listen({ host: '127.0.0.1', port: 0 })
  let reacting: Reacting | undefined
  if (kind === 'reacting') {
    const other = await setUp(world, keyProvider, { name: 'other', plan: 'enterprise' })
    const { key: otherKey } = await addApplication(world, other.tenantId)
    reacting = { ...(await addReactors(app, apiKey, key, CARD)), otherKey }
  }
  tell(app.server.address(), key, { samples, reacting })
}

async function openStore(): Promise<Store> {
  if (database !== '') return await PostgresStore.open({ url: database })
  const slow = kind.startsWith('slow-sync')
  return await SqliteStore.open({
    folder,
    onFault: (error) => {
      throw error
    },
    ...(slow ? { probe: new URL('./slow-sync.probe.ts', import.meta.url) } : {}),
  })
}

function appOf(world: World) {
  return createApp(world, {
    version: '0.0.0',
    fieldBuilds: NO_FIELD_BUILDS,
    corsOrigins: '*',
    publicAddress: { url: null, fieldsUrl: null, trustedProxies: [] },
    requestLimits: { perKey: null, perAddress: null },
    callbackRetryBaseMs: CALLBACK_PAUSE_MS,
    tokens: { tokensMax: TOKENIZE_TOKENS_MAX, privacyShown: false },
    transactions: {
      lifetimeMs: TRANSACTION_LIFETIME_MS,
      openMax: TRANSACTIONS_OPEN_MAX,
      publicOpenMax: TRANSACTIONS_OPEN_MAX,
    },
    proxy: { timeoutMs: 25_000 },
    reactors: {
      configurationRequired: true,
      jobStorageBytesMax: JOB_STORAGE_BYTES_MAX,
      responseHeaders: { allowed: [], origin: null },
    },
  })
}

async function jail(): Promise<JailRunner> {
  const settings = { packages: [], authorities: [], waysOut: NO_WAY }
  const opened = await JailRunner.open({ level: 'jail', ...settings })
  if (opened.flaw !== null) throw new Error(opened.flaw)
  return opened
}

function storeOf(store: Store): Store {
  if (kind === 'unstored') return withCommit(store, async () => null)
  if (kind === 'unrecorded') {
    return withCommit(store, async (tenantId, changes) => {
      const rest = changes.filter((it) => it.kind !== 'append-audit-events')
      return rest.length === 0 ? null : await store.commit(tenantId, rest)
    })
  }
  if (kind !== 'slow-sync-single') return store
  let last: Promise<unknown> = Promise.resolve()
  return withCommit(store, (tenantId, changes) => {
    const next = last.then(() => store.commit(tenantId, changes))
    last = next
    return next
  })
}

async function addApplication(
  world: World,
  tenantId: string,
): Promise<{ key: string; id: string }> {
  const now = world.clock.now()
  const id = idOf(now, world.random.bytes(10))
  const application: StoredApplication = {
    id,
    name: 'bench',
    type: 'private',
    permissions: permissionsOf('private'),
    rules: [],
    destinations: null,
    allowedOrigins: null,
    expiresAt: null,
    createdBy: id,
    createdAt: now,
    modifiedBy: null,
    modifiedAt: null,
  }
  const issued = issueKey(world.random, application, { version: 1, by: id, at: now })
  await world.store.commit(tenantId, [
    { kind: 'insert', entity: 'application', row: application },
    { kind: 'insert', entity: 'application_key', row: issued.stored },
    { kind: 'leave-access-state' },
  ])
  return { key: issued.key, id }
}

/** Facts a benchmark needs about its subject, by kind. */
interface SubjectFacts {
  readonly samples?: Samples | undefined
  readonly reacting?: Reacting | undefined
}

function tell(address: unknown, key: string, more: SubjectFacts = {}): void {
  const { port } = address as { port: number }
  process.stdout.write(`${JSON.stringify({ port, key, ...more })}\n`)
}

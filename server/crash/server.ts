/**
 * The server that is killed: the service as it ships, on a free port of the loopback.
 *
 * `node server.ts '{"folder": ...}'`. Prints one line of JSON when it listens: the port and, on the first
 * start, the management key. Stops gracefully at SIGTERM.
 */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { checkRootKey } from '../src/access/root-key-check.ts'
import { setUp } from '../src/access/applications/set-up.ts'
import { CanonicalJsonThread } from '../src/adapters/canonical-json/canonical-json-thread.ts'
import { UndiciEgress } from '../src/adapters/egress/undici-egress.ts'
import { FileKeyProvider } from '../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../src/adapters/local-keyring/local-keyring.ts'
import { PostgresStore } from '../src/adapters/storage/postgres/store.ts'
import { SqliteStore } from '../src/adapters/storage/sqlite/store.ts'
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
} from '../src/base/limits.ts'
import { Sweeper } from '../src/cli/sweeper.ts'
import type { WorldRandom } from '../src/ports/random.ts'
import type { Store } from '../src/ports/store.ts'
import { withCommit } from '../src/ports/with-commit.ts'
import type { World } from '../src/ports/world.ts'
import { acceptStandbys } from './accept-standbys.ts'
import { isArmed, type KillAt, type ServicePoint } from './points.ts'
import { weakened, type Weakness } from './weak-store.ts'
import { NO_FIELD_BUILDS } from '../src/fields/field-builds.ts'

export interface CrashServerOptions {
  readonly folder: string
  /** Address of the PostgreSQL database that everything but the root key is in; absent for a file in the folder. */
  readonly database?: string
  readonly killAt: KillAt | null
  readonly weakness: Weakness | null
  /** Defect injected into its connections: it takes every standby for a primary. */
  readonly acceptsStandbys?: boolean
}

export interface Ready {
  readonly port: number
  readonly managementKey: string | null
}

/** More than a run of an hour leaves open on purpose, and by kills: the limit has tests of its own. */
const OPEN_MAX = 1_000_000

async function serve(options: CrashServerOptions): Promise<void> {
  const { folder } = options
  if (options.acceptsStandbys === true) acceptStandbys()
  const store = await open(options)
  const random = new SystemRandom()
  const empty = (await store.tenants.count()) === 0
  const keyProvider = await FileKeyProvider.open(join(folder, 'root.key'), {
    createIfMissing: empty,
  })
  const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
  const log = new SystemLog({ level: 'error', descriptor: 2 })
  const egress = new UndiciEgress({ allow: [], extraAuthorities: [] })
  const world = {
    clock: new SystemClock(),
    random,
    log,
    keyring,
    store,
    egress,
    runner: NO_RUNNER,
    canonicalJson: new CanonicalJsonThread(),
  }
  await checkRootKey(store, keyProvider)
  const made = empty ? await setUp(world, keyProvider, { name: 'crash', plan: 'enterprise' }) : null

  // Not before the load: data read back before it must not be swept.
  let sweeper: Sweeper | null = null
  const begin = (): void => void (sweeper ??= new Sweeper(world, SWEEP_EVERY_MS))
  const app = createApp(change(world, options, begin), {
    version: '0.0.0',
    fieldBuilds: NO_FIELD_BUILDS,
    corsOrigins: [],
    publicAddress: { url: null, fieldsUrl: null, trustedProxies: [] },
    requestLimits: { perKey: null, perAddress: null },
    callbackRetryBaseMs: CALLBACK_PAUSE_MS,
    tokens: { tokensMax: TOKENIZE_TOKENS_MAX, privacyShown: false },
    transactions: {
      lifetimeMs: TRANSACTION_LIFETIME_MS,
      openMax: OPEN_MAX,
      publicOpenMax: OPEN_MAX,
    },
    proxy: { timeoutMs: 25_000 },
    reactors: {
      configurationRequired: true,
      jobStorageBytesMax: JOB_STORAGE_BYTES_MAX,
      responseHeaders: { allowed: [], origin: null },
    },
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  // Before it says that it is ready: the signal may come at once.
  process.once('SIGTERM', () => {
    void app
      .close()
      .then(() => sweeper?.stop())
      .then(() => store.close())
  })
  const ready: Ready = { port, managementKey: made?.apiKey ?? null }
  process.stdout.write(`${JSON.stringify(ready)}\n`)
}

async function open({ folder, database, killAt }: CrashServerOptions): Promise<Store> {
  if (database !== undefined) return await PostgresStore.open({ url: database })
  const probe = new URL('./kill.probe.ts', import.meta.url)
  probe.search = new URLSearchParams({
    point: killAt?.point ?? '',
    nth: String(killAt?.nth ?? 0),
    folder,
  }).toString()
  return await SqliteStore.open({
    folder,
    probe,
    onFault: (error) => {
      throw error
    },
  })
}

/** Often: most servers here do not live for a second. */
const SWEEP_EVERY_MS = 20

/** Applies the ordered deviations from the shipped world. */
function change(
  world: World,
  { folder, killAt, weakness }: CrashServerOptions,
  begin: () => void,
): World {
  const store = weakness === null ? world.store : weakened(world.store, weakness)
  const random = killAt?.point === 'again' ? stuttering(world.random) : world.random
  return { ...world, random, store: dying(store, folder, killAt, begin) }
}

/** Dies before or after the store is asked to commit; calls `begin` when the load has begun. */
function dying(store: Store, folder: string, killAt: KillAt | null, begin: () => void): Store {
  let left = killAt?.nth ?? 0
  const pass = (point: ServicePoint): void => {
    if (killAt?.point !== point || !isArmed(folder)) return
    if (--left === 0) process.kill(process.pid, 'SIGKILL')
  }
  return withCommit(store, async (tenantId, changes) => {
    if (isArmed(folder)) begin()
    pass('asked')
    const conflict = await store.commit(tenantId, changes)
    pass('told')
    return conflict
  })
}

/**
 * A random source that now and then returns an id twice in a row, among ids drawn together: those of tokens.
 *
 * Otherwise no commit is ever refused for an id collision, and the recovery from that goes untested. Ids drawn
 * alone never repeat: one may name a transaction, and two transactions of one name are a fault.
 */
function stuttering(random: WorldRandom): WorldRandom {
  let last = random.bytes(ID_BYTES)
  return {
    bytes(length) {
      const drawn = random.bytes(length)
      if (length <= ID_BYTES || length % ID_BYTES !== 0) return drawn
      for (let at = 0; at < length; at += ID_BYTES) {
        const [dice] = random.bytes(1)
        if (dice === 0) drawn.set(last, at)
        else last = drawn.slice(at, at + ID_BYTES)
      }
      return drawn
    },
    signingKey: (tenantId) => random.signingKey(tenantId),
  }
}

const ID_BYTES = 10

if (import.meta.main) await serve(JSON.parse(process.argv[2]!) as CrashServerOptions)

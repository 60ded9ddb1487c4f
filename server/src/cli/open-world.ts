/** Builds the production world from the configuration: chooses the adapter for each port. */
import type { Duplex } from 'node:stream'
import { CanonicalJsonThread } from '../adapters/canonical-json/canonical-json-thread.ts'
import { UndiciEgress } from '../adapters/egress/undici-egress.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import type { Family } from '../adapters/metrics/exposition.ts'
import type { Meters } from '../adapters/metrics/meters.ts'
import { reactorFamilies, writingFamilies } from '../adapters/metrics/adapter-families.ts'
import { makeDataFolder } from '../adapters/storage/sqlite/make-data-folder.ts'
import { requireVault } from '../adapters/storage/sqlite/requirements.ts'
import { SqliteStore } from '../adapters/storage/sqlite/store.ts'
import { NO_RUNNER } from '../adapters/system/no-runner.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemLog } from '../adapters/system/system-log.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import type { InProcessCaller } from '../base/access.ts'
import { KEY_ANNOUNCED_MS, KEYS_BELIEVED_MS } from '../base/limits.ts'
import type { Config } from '../config.ts'
import type { KeyMaker, KeyRepair } from '../ports/keyring.ts'
import { NoVault } from '../ports/no-vault.ts'
import type { Store } from '../ports/store.ts'
import type { World } from '../ports/world.ts'
import { openRootKeys, rootKeyFileOf } from './open-root-keys.ts'
import { openRunner } from './open-runner.ts'
import { readAuthorities } from './read-authorities.ts'

export interface OpenWorld {
  readonly world: World
  readonly keyProvider: RootKeys
  /** Opens the root keys that the settings name now, as the next start would. */
  readonly reopenRootKeys: () => Promise<RootKeys>
  readonly keyMaker: KeyMaker
  readonly keyRepair: KeyRepair
  readonly rootKeyFile: string
  /** The metrics of the chosen adapters. */
  readonly families: () => Family[]
  /** Registers the service: the egress gateway then blocks requests back to it, and code can connect to it. */
  readonly serves: (own: OwnService) => void
  /** Registers another port of the service, which the egress gateway blocks as well. */
  readonly owns: (port: number) => void
  readonly close: () => Promise<void>
}

/** The service that runs on this world. */
export interface OwnService {
  readonly port: number
  /** Opens a connection to it for a tenant's code. */
  readonly connect: (inProcessCaller: InProcessCaller) => Duplex
}

export interface WorldOptions {
  /** Called when the store can no longer be written: the process should end. */
  readonly onFault: (error: unknown) => void
  /** Whether reactors are to be run. */
  readonly reactors?: true
  /** Whether to refuse a missing vault, with NoVault, instead of creating it, whatever the settings say. */
  readonly existing?: true
  /** Counts the calls of the world's ports. */
  readonly meters?: Meters
  /** Overrides KEYS_SHARED. For tests. */
  readonly keysShared?: typeof KEYS_SHARED
  /** Multiplies the deadlines of the database. For tests: a busy machine is no outage. */
  readonly databaseDeadlineFactor?: number
}

/** Timing of keys for servers that share a database. */
const KEYS_SHARED = { believedMs: KEYS_BELIEVED_MS, announcedMs: KEY_ANNOUNCED_MS }

export async function openWorld(
  config: Config,
  { onFault, reactors, existing, meters, keysShared, databaseDeadlineFactor = 1 }: WorldOptions,
): Promise<OpenWorld> {
  const lines = new SystemLog({ level: config.logLevel, descriptor: 1 })
  const log = meters?.log(lines) ?? lines
  const random = new SystemRandom()
  const authorities = readAuthorities(config.extraCaFile)
  const gateway = new UndiciEgress({
    allow: config.egressAllow,
    allowByTenant: config.egressAllowByTenant,
    extraAuthorities: authorities,
  })
  const egress = meters?.egress(gateway) ?? gateway
  const create = existing !== true && !config.noCreate
  const options = { onFault, deadlineFactor: databaseDeadlineFactor, create }
  const { store, measured } = await openStore(config, options).catch(explainNoCreate(config))
  const canonicalJson = new CanonicalJsonThread()
  let own: OwnService | null = null
  let runner = NO_RUNNER
  const families = [measured]
  try {
    if (reactors === true) {
      const connect = (inProcessCaller: InProcessCaller): Duplex | null =>
        own?.connect(inProcessCaller) ?? null
      const jail = await openRunner({
        level: config.reactorLevel,
        packages: config.reactorPackages,
        logs: config.reactorLogs,
        egress,
        log,
        authorities,
        connect,
      })
      runner = meters?.runner(jail) ?? jail
      families.push(() => reactorFamilies(jail.processes))
    }
    const keyProvider = await openRootKeys(config, await store.tenants.rootKeyCheck(), { create })
    const clock = new SystemClock()
    const shared = config.databaseUrl === null ? null : { clock, ...KEYS_SHARED, ...keysShared }
    const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id), shared)
    return {
      world: {
        clock,
        random,
        log,
        keyring,
        store,
        egress,
        runner,
        canonicalJson,
      },
      keyProvider,
      reopenRootKeys: async () =>
        openRootKeys(config, await store.tenants.rootKeyCheck(), { create: false }),
      keyMaker: keyring,
      keyRepair: keyring,
      rootKeyFile: rootKeyFileOf(config),
      families: () => families.flatMap((it) => it()),
      serves: (service) => {
        own = service
        gateway.own(service.port)
      },
      owns: (port) => gateway.own(port),
      close: async () => {
        await runner.close()
        await canonicalJson.close()
        await egress.close()
        await store.close()
        await lines.close()
      },
    }
  } catch (error) {
    await runner.close()
    await store.close()
    throw error
  }
}

interface OpenStore {
  readonly store: Store
  readonly measured: () => Family[]
}

interface StoreOptions extends Pick<WorldOptions, 'onFault'> {
  readonly deadlineFactor: number
  readonly create: boolean
}

async function openStore(
  config: Config,
  { onFault, deadlineFactor, create }: StoreOptions,
): Promise<OpenStore> {
  const url = config.databaseUrl
  const folder = config.dataDir
  if (url === null) {
    if (!create) requireVault(folder)
    const store = await SqliteStore.open({ folder, onFault })
    return { store, measured: () => writingFamilies(store.activity) }
  }
  // For the root key, unless it is stored elsewhere.
  if (create && config.rootKeyFile === null) makeDataFolder(folder)
  // Loaded on demand, here and elsewhere: most vaults do without, and save 2.5 MB of heap.
  const { PostgresStore } = await import('../adapters/storage/postgres/store.ts')
  // The database measures its own waits.
  const store = await PostgresStore.open({ url, deadlineFactor, existing: !create })
  return { store, measured: () => [] }
}

/** Returns a handler that adds to NoVault the setting that forbids creating a vault. Rethrows every error. */
function explainNoCreate({ noCreate, databaseUrl }: Config): (error: unknown) => never {
  return (error) => {
    if (!noCreate || !(error instanceof NoVault)) throw error
    const where = databaseUrl === null ? 'SYMBOLON_DATA_DIR' : 'SYMBOLON_DATABASE_URL'
    throw new NoVault(
      `${error.message}; SYMBOLON_NO_CREATE (--no-create) forbids creating one: check ${where} and the mounts, ` +
        'or unset SYMBOLON_NO_CREATE to create a new vault',
    )
  }
}

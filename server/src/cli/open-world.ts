/**
 * The real world, as configured: which technology stands behind each promise is decided here.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { UndiciEgress } from '../adapters/egress/undici-egress.ts'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { PostgresStore } from '../adapters/postgres/postgres-store.ts'
import { SqliteStore } from '../adapters/sqlite/sqlite-store.ts'
import { NO_RUNNER } from '../adapters/system/no-runner.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemLog } from '../adapters/system/system-log.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import type { Config } from '../config.ts'
import type { KeyProvider } from '../world/key-provider.ts'
import type { Store } from '../world/store.ts'
import type { World } from '../world/world.ts'
import { openRunner } from './open-runner.ts'
import { readAuthorities } from './read-authorities.ts'

export interface OpenWorld {
  readonly world: World
  readonly keyProvider: KeyProvider
  readonly rootKeyFile: string
  /** Tells the world of the service: the door out lets no request come back to it, and code finds the way in. */
  readonly serves: (own: OwnService) => void
  readonly close: () => Promise<void>
}

/** The service that serves this world. */
export interface OwnService {
  readonly port: number
  /** Opens a connection to it for code of a tenant. */
  readonly connect: (tenantId: string) => Duplex
}

export interface WorldOptions {
  /** Called when the store can no longer be written: the process should end. */
  readonly onFault: (error: unknown) => void
  /** Whether reactors are to be run. */
  readonly reactors?: true
}

export async function openWorld(
  config: Config,
  { onFault, reactors }: WorldOptions,
): Promise<OpenWorld> {
  const log = new SystemLog({ level: config.logLevel, descriptor: 1 })
  const random = new SystemRandom()
  const authorities = readAuthorities(config.extraCaFile)
  const egress = new UndiciEgress({ allow: config.egressAllow, extraAuthorities: authorities })
  const store = await openStore(config, onFault)
  let own: OwnService | null = null
  let runner = NO_RUNNER
  try {
    if (reactors === true) {
      const connect = (tenantId: string): Duplex | null => own?.connect(tenantId) ?? null
      runner = await openRunner({
        level: config.reactorLevel,
        packages: config.reactorPackages,
        logs: config.reactorLogs,
        egress,
        log,
        authorities,
        connect,
      })
    }
    const rootKeyFile = config.rootKeyFile ?? join(config.dataDir, 'root.key')
    const empty = (await store.tenants.rootKeyCheck()) === null
    const keyProvider = await FileKeyProvider.open(rootKeyFile, { createIfMissing: empty })
    const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
    return {
      world: { clock: new SystemClock(), random, log, keyring, store, egress, runner },
      keyProvider,
      rootKeyFile,
      serves: (service) => {
        own = service
        egress.own(service.port)
      },
      close: async () => {
        await runner.close()
        await egress.close()
        await store.close()
        await log.close()
      },
    }
  } catch (error) {
    await runner.close()
    await store.close()
    throw error
  }
}

async function openStore(config: Config, onFault: WorldOptions['onFault']): Promise<Store> {
  const { databaseUrl: url, dataDir: folder } = config
  if (url === null) return await SqliteStore.open({ folder, onFault })
  // For the root key, unless that is elsewhere.
  if (config.rootKeyFile === null) mkdirSync(folder, { recursive: true, mode: 0o700 })
  return await PostgresStore.open({ url })
}

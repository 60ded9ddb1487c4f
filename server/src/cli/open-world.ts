/**
 * The real world, as configured: which technology stands behind each promise is decided here.
 */
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { parseCertificates } from '../adapters/egress/trust.ts'
import { UndiciEgress } from '../adapters/egress/undici-egress.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import { SqliteStore } from '../adapters/sqlite/sqlite-store.ts'
import { NO_RUNNER } from '../adapters/system/no-runner.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemLog } from '../adapters/system/system-log.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { ConfigError, type Config } from '../config.ts'
import type { KeyMaker } from '../world/keyring.ts'
import type { World } from '../world/world.ts'
import { openRootKeys, rootKeyFileOf } from './open-root-keys.ts'
import { openRunner } from './open-runner.ts'

export interface OpenWorld {
  readonly world: World
  readonly keyProvider: RootKeys
  readonly keyMaker: KeyMaker
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
  const store = await SqliteStore.open({ folder: config.dataDir, onFault })
  let own: OwnService | null = null
  let runner = NO_RUNNER
  try {
    if (reactors === true) {
      const connect = (tenantId: string): Duplex | null => own?.connect(tenantId) ?? null
      runner = await openRunner({ egress, log, authorities, connect })
    }
    const keyProvider = await openRootKeys(config, await store.tenants.rootKeyCheck())
    const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
    return {
      world: { clock: new SystemClock(), random, log, keyring, store, egress, runner },
      keyProvider,
      keyMaker: keyring,
      rootKeyFile: rootKeyFileOf(config),
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

function readAuthorities(file: string | null): string[] {
  if (file === null) return []
  try {
    const found = parseCertificates(readFileSync(file, 'utf8'))
    if (found.length === 0) throw new Error('there is none in it')
    return found
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const reason = code === undefined ? (error as Error).message : `it cannot be read (${code})`
    throw new ConfigError(
      `SYMBOLON_EXTRA_CA_FILE is '${file}', but must be a PEM file of certificates: ${reason}.`,
    )
  }
}

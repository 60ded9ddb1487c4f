/**
 * The real world, as configured: which technology stands behind each promise is decided here.
 */
import { join } from 'node:path'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { SqliteStore } from '../adapters/sqlite/sqlite-store.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemLog } from '../adapters/system/system-log.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import type { Config } from '../config.ts'
import type { KeyProvider } from '../world/key-provider.ts'
import type { World } from '../world/world.ts'

export interface OpenWorld {
  readonly world: World
  readonly keyProvider: KeyProvider
  readonly rootKeyFile: string
  readonly close: () => Promise<void>
}

/** `onFault` is called when the store can no longer be written: the process should end. */
export async function openWorld(
  config: Config,
  onFault: (error: unknown) => void,
): Promise<OpenWorld> {
  const log = new SystemLog({ level: config.logLevel, descriptor: 1 })
  const random = new SystemRandom()
  const store = await SqliteStore.open({ folder: config.dataDir, onFault })
  try {
    const rootKeyFile = config.rootKeyFile ?? join(config.dataDir, 'root.key')
    const empty = (await store.tenants.rootKeyCheck()) === null
    const keyProvider = await FileKeyProvider.open(rootKeyFile, { createIfMissing: empty })
    const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
    return {
      world: { clock: new SystemClock(), random, log, keyring, store },
      keyProvider,
      rootKeyFile,
      close: async () => {
        await store.close()
        await log.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

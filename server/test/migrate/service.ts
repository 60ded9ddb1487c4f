import type { AddressInfo } from 'node:net'
import { createApp } from '../../src/app.ts'
import { TOKENIZE_TOKENS_MAX } from '../../src/base/limits.ts'
import { openWorld, type OpenWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import { PATIENT } from '../kit/postgres/patient-store.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import { stillRunner } from '../kit/still-runner.ts'

export interface MigratedService extends Pick<OpenWorld, 'world' | 'keyProvider'> {
  readonly url: string
  readonly close: () => Promise<void>
}

/** The service as it ships, in this process, on the data folder or on the database. Jobs are accepted, and wait. */
export async function serveHere(folder: string, database?: string): Promise<MigratedService> {
  const flags = { 'data-dir': folder, 'log-level': 'silent', 'database-url': database }
  const opened = await openWorld(readConfig(flags, {}), {
    onFault: (error) => {
      throw error
    },
    databaseDeadlineFactor: PATIENT,
  })
  const { world, keyProvider } = opened
  const tokens = { ...STILL_SETTINGS.tokens, tokensMax: TOKENIZE_TOKENS_MAX }
  const app = createApp({ ...world, runner: stillRunner() }, { ...STILL_SETTINGS, tokens })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    world,
    keyProvider,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      await app.close()
      await opened.close()
    },
  }
}

/**
 * The service as it ships, whose data keys are rotated while it serves: `node server.ts '{"folder": ...}'`.
 *
 * Prints lines of JSON: `port`, how many rotations it found `unfinished` and, on the first start, `key` and `samples`; `left`
 * as it rotates; `rotated` at the end. A rotation that was begun goes on by itself; a new one is begun at SIGUSR2.
 */
import type { AddressInfo } from 'node:net'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { setUp } from '../../src/access/applications/set-up.ts'
import { createApp } from '../../src/app.ts'
import {
  CALLBACK_PAUSE_MS,
  JOB_STORAGE_BYTES_MAX,
  TOKENIZE_TOKENS_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTIONS_OPEN_MAX,
} from '../../src/base/limits.ts'
import { openWorld, type WorldOptions } from '../../src/cli/open-world.ts'
import { Rotations } from '../../src/cli/rotations.ts'
import { readConfig, type Config } from '../../src/config.ts'
import { unfinishedRotations } from '../../src/key-rotation/rotate-data-key.ts'
import { fill, type Samples } from '../../bench/fill.ts'
import { PATIENT } from '../kit/postgres/patient-store.ts'
import { stillRunner } from '../kit/still-runner.ts'
import { NO_FIELD_BUILDS } from '../../src/fields/field-builds.ts'

export interface RotatingServerOptions {
  readonly folder: string
  /** An address of PostgreSQL, where it is not the only server; null to keep everything in the folder. */
  readonly database: string | null
  /** Instead of what servers that share a database keep to. */
  readonly keysShared?: WorldOptions['keysShared']
  /** How many tokens it makes on its first start. */
  readonly tokens: number
  readonly retirementMs: number
}

export interface News {
  readonly port?: number
  readonly unfinished?: number
  readonly key?: string
  readonly samples?: Samples
  readonly left?: number
  readonly rotated?: boolean
}

async function serve(options: RotatingServerOptions): Promise<void> {
  const { tokens, retirementMs, keysShared } = options
  const { world, keyProvider, keyMaker } = await openWorld(configOf(options), {
    onFault: (error) => {
      throw error
    },
    databaseDeadlineFactor: PATIENT,
    ...(keysShared && { keysShared }),
  })
  const first = (await world.store.tenants.count()) === 0
  const made = first
    ? await setUp(world, keyProvider, { name: 'rotation', plan: 'enterprise' })
    : null
  const samples =
    made === null ? undefined : await fill(world, made.tenantId, made.applicationId, tokens)
  // Code is accepted, and never run: jobs wait.
  const app = createApp(
    { ...world, runner: stillRunner() },
    {
      version: '0.0.0',
      fieldBuilds: NO_FIELD_BUILDS,
      corsOrigins: [],
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
    },
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  // Node would write it at an exit, and this process is killed.
  flushCompileCache()
  const rotations = new Rotations(world, keyMaker, retirementMs)
  const rotate = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) {
      await rotations.rotate(id, ({ left }) => say({ left }))
      say({ rotated: true })
    }
  }
  // Before it says that it is ready: the signal may come at once, and would end it.
  process.on('SIGUSR2', () => void world.store.tenants.ids().then(rotate))
  const unfinished = await unfinishedRotations(world)
  const begun = made === null ? {} : { key: made.apiKey, samples: samples! }
  say({ port, unfinished: unfinished.length, ...begun })
  void rotate(unfinished)
}

/** How a server of this test finds its vault. */
export function configOf({
  folder,
  database,
}: Pick<RotatingServerOptions, 'folder' | 'database'>): Config {
  const where = { 'data-dir': folder, 'root-key-file': join(folder, 'root.key') }
  const shared = database === null ? {} : { SYMBOLON_DATABASE_URL: database }
  return readConfig({ ...where, 'log-level': 'silent' }, shared)
}

function say(news: News): void {
  process.stdout.write(`${JSON.stringify(news)}\n`)
}

if (import.meta.main) await serve(JSON.parse(process.argv[2]!) as RotatingServerOptions)

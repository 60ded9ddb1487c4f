/** The context of the checks: settings, machine, and the store and the root key, each opened once, and only to read. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FileKeyProvider } from '../../adapters/local-keyring/file-key-provider.ts'
import { hasRootKey } from '../../adapters/local-keyring/root-key-file.ts'
import { RootKeys } from '../../adapters/local-keyring/root-keys.ts'
import type { PostgresFacts } from '../../adapters/postgres/inspection.ts'
import { openSqliteInspection } from '../../adapters/sqlite/inspection.ts'
import { findListener } from '../../adapters/system/control-socket.ts'
import type { HostMachine } from '../../adapters/system/host-machine.ts'
import type { Config } from '../../config.ts'
import type { JobReader } from '../../ports/jobs.ts'
import type { AuditLogReader, TenantReader } from '../../ports/store.ts'
import { rootKeyFileOf } from '../open-root-keys.ts'
import { CheckSkipped } from './check.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'

export interface DoctorContext {
  readonly config: Config
  /** Variables with our prefix that are no settings. */
  readonly unknownVariables: readonly string[]
  readonly machine: HostMachine
  readonly service: ServiceState
  /** The database, of any version. Rejects with CheckSkipped if there is none or it cannot be read. */
  readonly database: () => Promise<InspectedDatabase>
  /** The content of a database of this program's version. Rejects with CheckSkipped. */
  readonly vault: () => Promise<VaultReaders>
  /** The root keys of the settings. Rejects with CheckSkipped. */
  readonly rootKeys: () => Promise<RootKeys>
  /** Tests the sandbox of reactors, once. */
  readonly sandbox: () => Promise<Sandbox>
}

export interface ServiceState {
  /** Whether a process uses the data folder. */
  readonly running: boolean
  /** Its process id; null if none is known. */
  readonly pid: number | null
  readonly socket: 'listening' | 'abandoned' | 'absent'
}

export interface InspectedDatabase {
  readonly version: number
  readonly knownVersion: number
  /** Null on SQLite. */
  readonly facts: PostgresFacts | null
}

export interface VaultReaders {
  readonly tenants: TenantReader
  readonly jobs: JobReader
  readonly auditLog: AuditLogReader
}

/** The part of an inspection that both adapters have. */
interface Inspection extends InspectedDatabase {
  readonly readers: () => VaultReaders
  readonly close: () => void | Promise<void>
}

export interface ContextInput {
  readonly config: Config
  readonly unknownVariables: readonly string[]
  readonly machine: HostMachine
  /** Where bubblewrap is; by default, where distributions install it. */
  readonly bubblewrap?: string
}

/** Call `close` at the end; it closes whatever was opened. */
export async function openContext(
  input: ContextInput,
): Promise<{ readonly context: DoctorContext; readonly close: () => Promise<void> }> {
  const { config, machine, bubblewrap } = input
  const inspection = once(() => inspect(config))
  const opened = async (): Promise<Inspection> => {
    const found = await inspection().catch(() => null)
    if (found !== null) return found
    throw new CheckSkipped('the database cannot be read: see the check database')
  }
  const context: DoctorContext = {
    ...input,
    service: await findService(config.dataDir, machine),
    database: async () => await (existsDatabase(config) ? inspection() : absent()),
    vault: once(async () => {
      if (!existsDatabase(config)) return await absent()
      const { version, knownVersion, readers } = await opened()
      if (version !== knownVersion) {
        throw new CheckSkipped('the database is of another version: see the check schema-version')
      }
      return readers()
    }),
    rootKeys: once(() => readRootKeys(config, opened)),
    sandbox: once(async () => {
      if ((await machine.temporaryFolder()).flaw === null) return openSandbox(config, bubblewrap)
      throw new CheckSkipped('its files have no place: see the check temporary-folder')
    }),
  }
  const close = async (): Promise<void> => {
    const found = existsDatabase(config) ? await inspection().catch(() => null) : null
    await found?.close()
  }
  return { context, close }
}

/** Whether there is a database to read: PostgreSQL is asked in any case. */
export function existsDatabase({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): boolean {
  return databaseUrl !== null || existsSync(join(dataDir, 'symbolon.db'))
}

async function absent(): Promise<never> {
  throw new CheckSkipped('there is no database yet: the first start creates it')
}

async function inspect({ databaseUrl, dataDir }: Config): Promise<Inspection> {
  if (databaseUrl === null) return { ...openSqliteInspection(dataDir), facts: null }
  const { openPostgresInspection } = await import('../../adapters/postgres/inspection.ts')
  return await openPostgresInspection(databaseUrl)
}

/** Like openRootKeys(), but creates nothing. */
async function readRootKeys(config: Config, opened: () => Promise<Inspection>): Promise<RootKeys> {
  try {
    const next = config.rootKeyNextFile
    const files = [rootKeyFileOf(config)]
    if (next !== null && (await hasRootKey(next))) files.push(next)
    const [first, ...others] = await Promise.all(
      files.map((it) => FileKeyProvider.open(it, { createIfMissing: false })),
    )
    const found = existsDatabase(config) ? await opened() : null
    const readable = found !== null && found.version === found.knownVersion
    const installed = readable ? await found.readers().tenants.rootKeyCheck() : null
    return new RootKeys([first!, ...others], installed?.id ?? null)
  } catch (error) {
    if (error instanceof CheckSkipped) throw error
    throw new CheckSkipped('the root key cannot be read: see the check root-key-file')
  }
}

async function findService(folder: string, machine: HostMachine): Promise<ServiceState> {
  const pid = await machine.lockHolder(join(folder, 'symbolon.lock'))
  const socket = await findListener(folder).catch(() => 'absent' as const)
  return { running: pid !== null || socket === 'listening', pid, socket }
}

function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | null = null
  return () => (result ??= work())
}

/** The context of the checks: settings and machine, and the store and the root key, each opened once and read-only. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SetUpError } from '../../access/set-up-error.ts'
import { FileKeyProvider } from '../../adapters/local-keyring/file-key-provider.ts'
import { hasRootKey } from '../../adapters/local-keyring/root-key-file.ts'
import { LocalKeyring } from '../../adapters/local-keyring/local-keyring.ts'
import { RootKeys } from '../../adapters/local-keyring/root-keys.ts'
import type { PostgresFacts } from '../../adapters/storage/postgres/inspection.ts'
import { openSqliteInspection } from '../../adapters/storage/sqlite/inspection.ts'
import { findListener } from '../../adapters/system/control-socket.ts'
import type { HostMachine } from '../../adapters/system/host-machine.ts'
import { SystemRandom } from '../../adapters/system/system-random.ts'
import type { Config } from '../../config.ts'
import { damageOfRootKeyCheck } from '../../integrity/root-key-check-damage.ts'
import type { JobReader } from '../../ports/jobs.ts'
import type { AccessRowReader, AuditLogReader, TenantReader } from '../../ports/store.ts'
import { rootKeyFileOf } from '../open-root-keys.ts'
import { CheckSkipped } from './check.ts'
import { openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'

export interface DoctorContext {
  readonly config: Config
  /** Variables with our prefix that are not settings. */
  readonly unknownVariables: readonly string[]
  /** Variables of settings that hold service links, which are not their values. */
  readonly ignoredVariables: readonly string[]
  readonly machine: HostMachine
  readonly service: ServiceState
  /** Opens the database, of any version. Rejects with the reason, or with CheckSkipped if there is none yet. */
  readonly openDatabase: () => Promise<InspectedDatabase>
  /** The same for every check but `database`, which reports its failure: rejects with CheckSkipped. */
  readonly database: () => Promise<InspectedDatabase>
  /** The content of a database of this program's version. Rejects with CheckSkipped. */
  readonly vault: () => Promise<VaultReaders>
  /** The root keys of the settings. Rejects with CheckSkipped. */
  readonly rootKeys: () => Promise<RootKeys>
  /** The tenant keys, under the root key of the data. Rejects with CheckSkipped. */
  readonly keyring: () => Promise<LocalKeyring>
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
  readonly accessRows: AccessRowReader
}

/** The part of an inspection that both adapters have. */
interface Inspection extends InspectedDatabase {
  readonly readers: () => VaultReaders
  readonly close: () => void | Promise<void>
}

export interface ContextInput {
  readonly config: Config
  readonly unknownVariables: readonly string[]
  readonly ignoredVariables: readonly string[]
  readonly machine: HostMachine
  readonly sandboxOptions?: SandboxOptions
}

/** Opens a context; `close` releases everything that the checks opened. */
export async function openContext(
  input: ContextInput,
): Promise<{ readonly context: DoctorContext; readonly close: () => Promise<void> }> {
  const { config, machine, sandboxOptions } = input
  const inspection = once(() => inspect(config))
  const openDatabase = async (): Promise<Inspection> => {
    if (config.databaseUrl === null) namesIn(config.dataDir)
    return existsDatabase(config) ? await inspection() : await absent()
  }
  const database = async (): Promise<Inspection> =>
    await openDatabase().catch((error: unknown) => {
      if (error instanceof CheckSkipped) throw error
      throw new CheckSkipped('the database cannot be read: see the check database')
    })
  const vault = once(async () => readersOf(await database()))
  const rootKeys = once(() => readRootKeys(config, vault))
  const context: DoctorContext = {
    ...input,
    service: await findService(config.dataDir, machine),
    openDatabase,
    database,
    vault,
    rootKeys,
    keyring: once(async () => await provenKeyring(await vault(), await rootKeys())),
    sandbox: once(async () => {
      if ((await machine.temporaryFolder()).flaw === null)
        return openSandbox(config, sandboxOptions)
      throw new CheckSkipped('it needs temporary files: see the check temporary-folder')
    }),
  }
  const close = async (): Promise<void> => {
    const found = existsDatabase(config) ? await inspection().catch(() => null) : null
    await found?.close()
  }
  return { context, close }
}

/** Whether there is a database to read. With PostgreSQL always true: the connection attempt decides. */
export function existsDatabase({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): boolean {
  return databaseUrl !== null || existsSync(join(dataDir, 'symbolon.db'))
}

/** Returns the file names in the data folder; none if it does not exist. Throws CheckSkipped if it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return existsSync(folder) ? readdirSync(folder) : []
  } catch {
    throw new CheckSkipped('the data folder cannot be read: see the check folder-permissions')
  }
}

async function absent(): Promise<never> {
  throw new CheckSkipped('there is no database yet: the first start creates it')
}

async function inspect({ databaseUrl, dataDir }: Config): Promise<Inspection> {
  if (databaseUrl === null) return { ...openSqliteInspection(dataDir), facts: null }
  const { openPostgresInspection } = await import('../../adapters/storage/postgres/inspection.ts')
  return await openPostgresInspection(databaseUrl)
}

function readersOf({ version, knownVersion, facts, readers }: Inspection): VaultReaders {
  if (facts !== null && facts.forbiddenTables.length > 0) {
    throw new CheckSkipped('some tables cannot be read: see the check writable')
  }
  if (version !== knownVersion) {
    throw new CheckSkipped('the database is of another version: see the check schema-version')
  }
  return readers()
}

/** Like openRootKeys(), but creates nothing. */
async function readRootKeys(config: Config, vault: () => Promise<VaultReaders>): Promise<RootKeys> {
  const { tenants } = await vault()
  const first = await keyIn(rootKeyFileOf(config), 'root-key-file')
  const next = await nextKeyIn(config.rootKeyNextFile)
  return new RootKeys(
    next === null ? [first] : [first, next],
    (await tenants.rootKeyCheck())?.id ?? null,
  )
}

async function nextKeyIn(file: string | null): Promise<FileKeyProvider | null> {
  const there = file !== null && (await hasRootKey(file).catch(() => true))
  return there ? await keyIn(file, 'next-root-key') : null
}

/** Opens a root key whose flaws the check named `check` reports. */
async function keyIn(file: string, check: string): Promise<FileKeyProvider> {
  try {
    return await FileKeyProvider.open(file, { createIfMissing: false })
  } catch {
    throw new CheckSkipped(`a root key cannot be read: see the check ${check}`)
  }
}

async function provenKeyring({ tenants }: VaultReaders, rootKeys: RootKeys): Promise<LocalKeyring> {
  const keyring = keyringOf(tenants, rootKeys)
  const installed = await tenants.rootKeyCheck()
  if (installed === null) return keyring
  await damageOfRootKeyCheck({ tenants }, keyring, rootKeys, installed).catch((error: unknown) => {
    if (!(error instanceof SetUpError)) throw error
    throw new CheckSkipped('the root key is not the one of the data: see the check root-key')
  })
  return keyring
}

/** The keys of tenants under this root key, be it the right one or not. */
export function keyringOf(tenants: TenantReader, rootKeys: RootKeys): LocalKeyring {
  return new LocalKeyring(rootKeys, new SystemRandom(), (id) => tenants.keys(id))
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

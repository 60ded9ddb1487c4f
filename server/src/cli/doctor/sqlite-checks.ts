import { statSync } from 'node:fs'
import { join } from 'node:path'
import { isDatabaseGone } from '../../adapters/storage/sqlite/data-folder.ts'
import { quickCheck, Uninspectable } from '../../adapters/storage/sqlite/inspection.ts'
import { MiB } from '../../base/limits.ts'
import {
  CheckSkipped,
  failed,
  ok,
  usesSqlite,
  warning,
  words,
  type Check,
  type Finding,
} from './check.ts'
import { existsDatabase, namesIn, type DoctorContext } from './context.ts'
import { databaseBytes } from './folder-checks.ts'
import { reasonOf, RESTORE_DAMAGED } from './run-checks.ts'

/** Time limit for reading every page, in milliseconds: enough for 10 GB at 500 MB/s. Ours. */
const QUICK_CHECK_MS_MAX = 20_000

/** Four times the size to which SQLite truncates the log; beyond it, something blocks checkpoints. Ours. */
const LOG_BYTES_MAX = 64 * MiB

/** The database file. */
export const SQLITE_CHECKS: readonly Check[] = [
  { name: 'database', group: 'database', applies: usesSqlite, run: checkDatabase },
  {
    name: 'integrity',
    group: 'database',
    applies: usesSqlite,
    timeoutMs: QUICK_CHECK_MS_MAX + 5_000,
    run: checkIntegrity,
  },
  { name: 'write-ahead-log', group: 'database', applies: usesSqlite, run: checkLog },
]

async function checkDatabase({ config, openDatabase }: DoctorContext): Promise<Finding> {
  const { dataDir } = config
  namesIn(dataDir)
  if (isDatabaseGone(dataDir)) {
    return failed(
      `${dataDir} was used before, and its database is missing or empty.`,
      'Restore a backup to a new folder (symbolon restore) and set SYMBOLON_DATA_DIR to that; ' +
        `for a new vault instead, run rm ${words(join(dataDir, 'symbolon.lock'))}.`,
    )
  }
  if (!existsDatabase(config)) return ok('There is no database yet: the first start creates it.')
  try {
    const { version } = await openDatabase()
    if (version === 0) {
      return warning('The first start did not finish.', 'Start the service: symbolon serve.')
    }
  } catch (error) {
    if (!(error instanceof Uninspectable)) throw error
    return failed(
      `${join(dataDir, 'symbolon.db')} cannot be read: ${reasonOf(error)}.`,
      error.damaged
        ? RESTORE_DAMAGED
        : 'Start the service once (symbolon serve), as the owner of the data folder.',
    )
  }
  return ok(`${join(dataDir, 'symbolon.db')} can be read: ${databaseBytes(dataDir)} bytes.`)
}

async function checkIntegrity({ config, database, service }: DoctorContext): Promise<Finding> {
  await database()
  const found = await quickCheck(config.dataDir, QUICK_CHECK_MS_MAX)
  if (found === 'ok') return ok('Every page of the database is intact (PRAGMA quick_check).')
  if (found === null) {
    throw new CheckSkipped(
      `reading every page takes longer than ${QUICK_CHECK_MS_MAX / 1_000} s; symbolon backup reads them all`,
    )
  }
  // Without a service the file is read without locks: a service that started meanwhile may have written to it.
  if (!service.running && logBytes(config.dataDir) > 0) {
    throw new CheckSkipped('a service started meanwhile; run symbolon doctor again')
  }
  return failed(`The database is damaged: ${found}.`, RESTORE_DAMAGED)
}

async function checkLog({ config, service }: DoctorContext): Promise<Finding> {
  namesIn(config.dataDir)
  const bytes = logBytes(config.dataDir)
  const size = `${Math.ceil(bytes / MiB)} MiB`
  if (bytes > LOG_BYTES_MAX) {
    return warning(
      `The write-ahead log has grown to ${size}: a long read, or a failure, prevents its checkpoint into the database.`,
      service.running
        ? 'End other programs that have symbolon.db open; if it stays, restart the service.'
        : 'Start the service (symbolon serve), which copies it to the database.',
    )
  }
  if (bytes > 0 && !service.running) {
    return ok(
      `The service did not stop cleanly; its next start reads the write-ahead log (${size}).`,
    )
  }
  return ok(`The size of the write-ahead log is ${size}.`)
}

function logBytes(folder: string): number {
  return statSync(join(folder, 'symbolon.db-wal'), { throwIfNoEntry: false })?.size ?? 0
}

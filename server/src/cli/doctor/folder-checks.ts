import { existsSync, lstatSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readMoveMark } from '../../adapters/storage/sqlite/move-mark.ts'
import { MiB } from '../../base/limits.ts'
import { failed, ok, usesSqlite, warning, words, type Check, type Finding } from './check.ts'
import { namesIn, type DoctorContext } from './context.ts'

/** With less, the write-ahead log may not fit: SQLite truncates it to 16 MiB. Ours. */
const FREE_BYTES_MIN = 64 * MiB

/** Ours: a service creates a handful of files. */
const FREE_FILES_MIN = 100

/** The data folder: its disk, its permissions and leftovers in it. */
export const FOLDER_CHECKS: readonly Check[] = [
  { name: 'disk-space', group: 'data folder', applies: usesSqlite, run: checkDiskSpace },
  { name: 'inodes', group: 'data folder', applies: usesSqlite, run: checkInodes },
  { name: 'file-system', group: 'data folder', run: checkFileSystem },
  { name: 'folder-permissions', group: 'data folder', run: checkFolder },
  { name: 'file-permissions', group: 'data folder', run: checkFiles },
  { name: 'moved', group: 'data folder', applies: usesSqlite, run: checkMoved },
  { name: 'leftovers', group: 'data folder', run: checkLeftovers },
]

async function checkDiskSpace({ config, machine }: DoctorContext): Promise<Finding> {
  const { freeBytes } = await machine.disk(existingFolder(config.dataDir))
  namesIn(config.dataDir)
  const used = databaseBytes(config.dataDir)
  const free = mebibytes(freeBytes)
  if (freeBytes < FREE_BYTES_MIN) {
    return failed(
      `Only ${free} are free in ${config.dataDir}; writes will soon fail.`,
      'Free some space on that disk, or move the data folder to a larger one while the service is stopped.',
    )
  }
  if (freeBytes < used + FREE_BYTES_MIN) {
    return warning(
      `${free} are free, and the database takes ${mebibytes(used)}: symbolon backup has no room for its copy.`,
      `Free some space: a backup needs ${mebibytes(used)} in ${config.dataDir}.`,
    )
  }
  return ok(`${free} are free; the database takes ${mebibytes(used)}.`)
}

async function checkInodes({ config, machine }: DoctorContext): Promise<Finding> {
  const { freeFiles } = await machine.disk(existingFolder(config.dataDir))
  if (freeFiles === null) return ok('This file system does not limit the number of files.')
  if (freeFiles >= FREE_FILES_MIN) return ok(`${freeFiles} more files can be created.`)
  return failed(
    `Only ${freeFiles} more files can be created on the file system of ${config.dataDir}.`,
    'Remove files that are not needed: the file system is running out of inodes (df -i).',
  )
}

async function checkFileSystem({ config, machine }: DoctorContext): Promise<Finding> {
  const { type } = await machine.disk(existingFolder(config.dataDir))
  const network = NETWORK[type]
  if (network !== undefined && config.databaseUrl === null) {
    return failed(
      `${config.dataDir} is on ${network}, where SQLite's locks and flushes cannot be relied on.`,
      'Stop the service, copy the data folder to a local disk, and set SYMBOLON_DATA_DIR to it; ' +
        'or use PostgreSQL (SYMBOLON_DATABASE_URL).',
    )
  }
  const volatile = VOLATILE[type]
  if (volatile !== undefined && (config.databaseUrl === null || config.rootKeyFile === null)) {
    return warning(
      `${config.dataDir} is on ${volatile}.`,
      'Set SYMBOLON_DATA_DIR to a folder on a disk; in a container, to one in a volume.',
    )
  }
  return ok('The data folder is on a suitable file system.')
}

/** Magic numbers. Source: statfs(2). */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB',
  0x01021997: '9P',
  0x00c36400: 'Ceph',
  0x5346414f: 'AFS',
}
const VOLATILE: Readonly<Record<number, string>> = {
  0x01021994: 'tmpfs, which a restart of the machine or the container empties',
  0x858458f6: 'ramfs, which a restart of the machine empties',
  0x794c7630: "overlayfs, a container's own layer, which is lost with the container",
}

async function checkFolder({ config: { dataDir }, machine }: DoctorContext): Promise<Finding> {
  if (!existsSync(dataDir)) return ok(`${dataDir} does not exist yet: the first start creates it.`)
  const found = statSync(dataDir)
  if (!found.isDirectory()) {
    return failed(`${dataDir} is not a folder.`, 'Set SYMBOLON_DATA_DIR to a folder.')
  }
  if (machine.user !== null && machine.user !== 0 && found.uid !== machine.user) {
    return failed(
      `${dataDir} belongs to user ${found.uid}, but this is user ${machine.user}.`,
      `Run symbolon as user ${found.uid}, or run chown -R ${machine.user} ${words(dataDir)}.`,
    )
  }
  if (machine.user === 0 && found.uid !== 0) {
    return warning(
      `${dataDir} belongs to user ${found.uid}, but this is root, who can do more than the service: some problems are not found.`,
      `Run symbolon doctor as user ${found.uid}.`,
    )
  }
  const mode = found.mode & 0o777
  if ((mode & 0o700) !== 0o700 || (mode & 0o077) !== 0) {
    return failed(
      `The mode of ${dataDir} is ${octal(mode)}, but only its owner should have access.`,
      `Run chmod 0700 ${words(dataDir)}.`,
    )
  }
  const above = dirname(resolve(dataDir))
  const { mode: modeAbove } = statSync(above)
  if ((modeAbove & 0o002) !== 0 && (modeAbove & 0o1000) === 0) {
    return failed(
      `Every user may write to ${above}, and so replace ${dataDir} with another folder.`,
      `Run chmod o-w ${words(above)}.`,
    )
  }
  return ok(`Only the owner has access to ${dataDir}.`)
}

async function checkFiles({ config: { dataDir }, machine }: DoctorContext): Promise<Finding> {
  const there = namesIn(dataDir)
    .filter((it) => /^symbolon\.(?!sock$)/.test(it))
    .map((it) => join(dataDir, it))
    .filter((it) => lstatSync(it).isFile())
  const owner = existsSync(dataDir) ? statSync(dataDir).uid : machine.user
  const open: string[] = []
  const foreign: string[] = []
  const unusable: string[] = []
  for (const path of there) {
    const { mode, uid } = lstatSync(path)
    if ((mode & 0o077) !== 0) open.push(path)
    else if ((mode & 0o600) !== 0o600) unusable.push(path)
    if (uid !== owner) foreign.push(path)
  }
  if (foreign.length > 0) {
    return failed(
      `These files do not belong to user ${owner}, who owns the folder: ${foreign.join(', ')}.`,
      `As root, run chown ${owner} ${words(...foreign)}.`,
    )
  }
  if (open.length > 0 || unusable.length > 0) {
    const wrong = [...open, ...unusable]
    const why = open.length > 0 ? 'Other users have access to' : 'The owner cannot read and write'
    return failed(`${why} ${wrong.join(', ')}.`, `Run chmod 0600 ${words(...wrong)}.`)
  }
  if (there.length === 0) return ok('There are no files in the data folder yet.')
  return ok(`${there.length} files in the data folder are private to its owner.`)
}

async function checkMoved({ config: { dataDir } }: DoctorContext): Promise<Finding> {
  const mark = readMoveMark(dataDir)
  if (mark === null) return ok('The data was not moved to another store.')
  if (!mark.finished) {
    return failed(
      'A move of the data to a PostgreSQL database is not finished.',
      'Run symbolon migrate --from sqlite --to postgres again to finish it, with the SYMBOLON_DATABASE_URL of that database; ' +
        `to keep using this folder, run rm ${words(join(dataDir, 'symbolon.moved'))}.`,
    )
  }
  return failed(
    'The data was moved to a PostgreSQL database, which now holds it.',
    `Set SYMBOLON_DATABASE_URL to that database; to return to the old data in this folder, run rm ${words(join(dataDir, 'symbolon.moved'))}.`,
  )
}

async function checkLeftovers({ config: { dataDir }, service }: DoctorContext): Promise<Finding> {
  const left = namesIn(dataDir).filter((it) => LEFTOVERS.test(it))
  if (service.socket === 'abandoned') left.push('symbolon.sock')
  if (left.length === 0) return ok('No interrupted command has left anything.')
  const paths = left.map((it) => join(dataDir, it))
  return warning(
    `An interrupted command or a killed service has left ${left.join(', ')}.`,
    `Unless a start, a backup or a restore is in progress, run rm -r ${words(...paths)}.`,
  )
}

/** Source: cli/backup.ts, cli/restore.ts, move-mark.ts, unusable-database.ts, root-key-file.ts. */
const LEFTOVERS =
  /^(?:backup-copy-.*|restoring|symbolon\.moved\.part|symbolon\..*\.trial|.*\.[0-9a-f]{16}\.new)$/

/** Returns the folder, or its nearest existing parent, in which the first start creates it. */
function existingFolder(folder: string): string {
  let at = resolve(folder)
  while (!existsSync(at)) at = dirname(at)
  return at
}

export function databaseBytes(folder: string): number {
  const files = ['symbolon.db', 'symbolon.db-wal'].map((it) => join(folder, it))
  return files.reduce((sum, it) => sum + (statSync(it, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / MiB)} MiB`
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

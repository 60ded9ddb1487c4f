import { createReadStream } from 'node:fs'
import { chmod, link, mkdtemp, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { encryptAge } from '../adapters/age/age-file.ts'
import { AgeIdentity, AgeRecipient } from '../adapters/age/age-keys.ts'
import { copyDatabase } from '../adapters/storage/sqlite/copy-database.ts'
import { readSqliteCopy } from '../adapters/storage/sqlite/read-beside-service.ts'
import { assertFolderUsable, requireDatabase } from '../adapters/storage/sqlite/data-folder.ts'
import { readMoveMark, refuseMoved } from '../adapters/storage/sqlite/move-mark.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import type { RootKeyCheck } from '../ports/stored.ts'
import { writeBackupHeader } from './backup-file.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { fileError, writeError } from './file-error.ts'
import { openRootKeys } from './open-root-keys.ts'
import { findDamage, sentenceOf } from './verify.ts'
import { VerifyProgress, type DamageName } from './verify-progress.ts'
import { version } from './version.ts'

/**
 * `symbolon backup`: writes the whole store to one encrypted file while the service runs.
 *
 * The backup holds everything acknowledged before it began, but not the root key. The file gets its name only once it is
 * complete and on disk. Unless `--no-verify` is given, it decrypts every value first. If one is damaged, it names it and exits with 1,
 * so that a script does not discard older backups that hold the value intact.
 */
export const backupCommand: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  // A data folder from before may still exist, and a copy of that would be useless.
  if (config.databaseUrl !== null) {
    throw new ConfigError('Back up a PostgreSQL database with its own tools, such as pg_dump.')
  }
  const to = flags['to']
  if (to === undefined) throw new ConfigError('--to is missing: the file to write.')
  const recipients = parseRecipients(flags['recipient'] ?? '')
  const verifies = flags['no-verify'] === undefined
  requireDatabase(config.dataDir)
  assertFolderUsable(config.dataDir)
  // The live vault is elsewhere: a nightly backup of this folder would look valid and be stale.
  if (readMoveMark(config.dataDir)?.finished === true) refuseMoved(config.dataDir)
  const madeAt = new SystemClock().now()
  // Next to the database, because the copy may be large and is as private.
  const prefix = join(config.dataDir, 'backup-copy-')
  const aside = await mkdtemp(prefix).catch(writeError(`${prefix}*`))
  const copy = join(aside, 'symbolon.db')
  const part = `${to}.${Buffer.from(new SystemRandom().bytes(4)).toString('hex')}.part`
  try {
    const { rootKey, tenants } = await copyDatabase(config.dataDir, copy)
    const verified = verifies ? await verifyCopy(aside, rootKey, config) : INTACT
    const header = writeBackupHeader({ madeAt, version: version(), rootKey, tenants })
    const refuse = fileError('to', to, 'written')
    const content = encryptAge(contentOf(header, copy), recipients)
    const bytes = await writeWhole(part, content).catch(refuse)
    await publish(part, to).catch(refuse)
    out(`${to}: ${bytes} bytes, ${tenants} tenants, for ${recipients.join(', ')}`)
    const whose = recipients.length === 1 ? 'that recipient' : 'one of these recipients'
    out(`It takes the secret of ${whose} to read it, and root key ${rootKey.id} to use it.`)
    return reportVerification(verified, config.dataDir, err)
  } finally {
    await rm(aside, { recursive: true, force: true })
    await rm(part, { force: true })
  }
}

/** Throws ConfigError for what is not a recipient, since the backup would lack a key that somebody counts on. */
function parseRecipients(text: string): AgeRecipient[] {
  return [...new Set(text.split(',').map((it) => it.trim()))].map((it) => {
    const recipient = AgeRecipient.parse(it)
    if (recipient !== null) return recipient
    throw new ConfigError(
      `--recipient is '${it}', but must be an age recipient, age1..., such as \`symbolon backup key\` prints.`,
    )
  })
}

interface Verification {
  readonly damaged: readonly DamageName[]
  /** Why it could not be verified; null if it was. */
  readonly failure: string | null
}

const INTACT: Verification = { damaged: [], failure: null }

/** Decrypts every value in a copy of the database. A failure must not prevent the backup. */
async function verifyCopy(
  folder: string,
  installed: RootKeyCheck,
  config: Config,
): Promise<Verification> {
  try {
    const rootKeys = await openRootKeys(config, installed, { create: false })
    const { tenants, close } = readSqliteCopy(folder)
    try {
      const whole = { rootKey: installed.id, tenant: undefined }
      const progress = await VerifyProgress.open(undefined, whole)
      const found = findDamage({ tenants, rootKeys, installed, tenant: undefined }, progress)
      for await (const _ of found);
      return { damaged: progress.damaged, failure: null }
    } finally {
      await close()
    }
  } catch (error) {
    return { damaged: [], failure: error instanceof Error ? error.message : String(error) }
  }
}

/** Returns the exit status: 1 unless the backup is known to be intact, so that no script discards older ones for it. */
function reportVerification(
  { damaged, failure }: Verification,
  folder: string,
  err: CommandInput['err'],
): number {
  if (failure !== null) {
    err(
      `The backup is made, but not verified: ${failure}. Verifying requires the root key; --no-verify makes backups without verifying them.`,
    )
    return 1
  }
  if (damaged.length === 0) return 0
  for (const it of damaged) err(sentenceOf(it))
  err(
    `${damaged.length} values in ${folder} are damaged, and so in the backup, which is otherwise complete. ` +
      'Keep earlier backups: they may hold these values intact. restore --skip-damaged restores everything else.',
  )
  return 1
}

/** `symbolon backup key`: generates the key pair for backups, and prints its public half. */
export const backupKey: RunCommand = async ({ flags, out }) => {
  const to = flags['to']
  if (to === undefined) throw new ConfigError('--to is missing: the file to write the secret to.')
  const { identity, secret } = await AgeIdentity.make()
  const text = `# public key: ${String(identity.recipient)}\n${secret}\n`
  const refuse = fileError('to', to, 'written')
  const file = await open(to, 'wx', 0o600).catch(refuse)
  try {
    await file.writeFile(text)
    await file.sync()
  } catch (error) {
    // Part of a secret is worth nothing, and would be in the way of the next attempt.
    await rm(to, { force: true })
    refuse(error)
  } finally {
    await file.close()
  }
  out(String(identity.recipient))
  return 0
}

async function* contentOf(header: Uint8Array, path: string): AsyncIterable<Uint8Array> {
  yield header
  yield* createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Uint8Array>
}

/** Returns the number of bytes written, once they are on disk. */
async function writeWhole(path: string, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  const file = await open(path, 'wx', 0o600)
  let length = 0
  try {
    for await (const it of bytes) {
      await file.writeFile(it)
      length += it.length
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return length
}

/** Renames the file, unless another has the name. */
async function publish(part: string, to: string): Promise<void> {
  await chmod(part, 0o600)
  await link(part, to)
  const folder = await open(dirname(to), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

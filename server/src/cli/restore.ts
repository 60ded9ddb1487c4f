import { existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { checkRootKey } from '../access/root-key-check.ts'
import { decryptAge } from '../adapters/age/age-file.ts'
import { AgeIdentity } from '../adapters/age/age-keys.ts'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { makeDataFolder } from '../adapters/sqlite/make-data-folder.ts'
import { SqliteStore } from '../adapters/sqlite/sqlite-store.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { ConfigError, readConfig } from '../config.ts'
import { openSamples, type OpenedSamples } from '../key-rotation/open-samples.ts'
import { abandonRuns } from '../reactors/jobs/abandoned-runs.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import { readBackupHeader, type BackupHeader } from './backup-file.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { fileError, writeError } from './file-error.ts'
import { rootKeyFileOf } from './open-root-keys.ts'

/**
 * `symbolon restore`: creates a data folder from a backup, and verifies that it opens before giving it its name.
 *
 * Stops before writing anything if the backup key or the root key does not match, and names the one required. Refuses a
 * folder that holds anything but the root key.
 */
export const restore: RunCommand = async ({ flags, out }) => {
  const config = readConfig(flags)
  const [from, identity] = [fileIn(flags, 'from'), await readIdentity(fileIn(flags, 'identity'))]
  const rootKeyFile = rootKeyFileOf(config)
  const folder = config.dataDir
  const there = existsSync(folder)
  if (there) await refuseFilled(folder, rootKeyFile)
  const keyProvider = await FileKeyProvider.open(rootKeyFile, { createIfMissing: false })

  makeDataFolder(folder)
  const beside = join(folder, 'restoring')
  let restored = false
  try {
    const header = await unpack({ from, identity, beside, keyProvider })
    const depth = flags['all'] === undefined ? 'samples' : 'all'
    const opened = await tryOut(beside, keyProvider, depth)
    await rename(join(beside, 'symbolon.db'), join(folder, 'symbolon.db'))
    await syncFolder(folder)
    restored = true
    out(`restored to ${folder}: as of ${new Date(header.madeAt).toISOString()}`)
    out(`${opened.tenants} tenants, ${opened.tokens} tokens, ${opened.envelopes} values opened`)
    return 0
  } finally {
    await rm(beside, { recursive: true, force: true })
    // A folder that is not empty by now is kept, and this error must not hide the first.
    if (!there && !restored) await rmdir(folder).catch(() => {})
  }
}

function fileIn(flags: CommandInput['flags'], name: string): string {
  const file = flags[name]
  if (file === undefined) throw new ConfigError(`--${name} is missing: a file.`)
  return file
}

async function readIdentity(path: string): Promise<AgeIdentity> {
  const identity = AgeIdentity.parseFile(
    await readFile(path, 'utf8').catch(fileError('identity', path, 'read')),
  )
  if (identity !== null) return identity
  throw new ConfigError(
    `--identity is '${path}', but must be a file with one AGE-SECRET-KEY-1... .`,
  )
}

async function refuseFilled(folder: string, rootKeyFile: string): Promise<void> {
  const own = resolve(dirname(rootKeyFile)) === resolve(folder) ? basename(rootKeyFile) : null
  const others = (await readdir(folder)).filter((it) => it !== own)
  if (others.length > 0) {
    throw new Error(
      `Cannot restore to ${folder}: there is ${others[0]} in it; name an empty folder`,
    )
  }
}

interface Unpacking {
  readonly from: string
  readonly identity: AgeIdentity
  readonly beside: string
  readonly keyProvider: KeyProvider
}

/** Writes the content of the backup to a separate folder, if the root key is the right one. */
async function unpack({ from, identity, beside, keyProvider }: Unpacking): Promise<BackupHeader> {
  const opened = await open(from).catch(fileError('from', from, 'read'))
  if ((await opened.stat()).isDirectory()) {
    await opened.close()
    throw new ConfigError(`--from is '${from}', which is a folder: name the backup in it.`)
  }
  const source = opened.createReadStream({ highWaterMark: 1024 * 1024 })
  const path = join(beside, 'symbolon.db')
  const refuse = writeError(path)
  let header: BackupHeader | null = null
  let file: Awaited<ReturnType<typeof open>> | null = null
  try {
    for await (const chunk of decryptAge(source as AsyncIterable<Uint8Array>, identity)) {
      if (header === null) {
        const first = readBackupHeader(chunk)
        header = first.header
        const { rootKey } = header
        await checkRootKey({ tenants: { rootKeyCheck: async () => rootKey } }, keyProvider)
        await mkdir(beside, { mode: 0o700 }).catch(refuse)
        file = await open(path, 'wx', 0o600).catch(refuse)
        await file.writeFile(first.rest).catch(refuse)
      } else await file!.writeFile(chunk).catch(refuse)
    }
    await file?.sync().catch(refuse)
  } finally {
    await file?.close()
    source.destroy()
  }
  return header!
}

/** Opens it as the service would, abandons runs that the original has very likely run since, and closes it again. */
async function tryOut(
  folder: string,
  keyProvider: KeyProvider,
  depth: 'samples' | 'all',
): Promise<OpenedSamples> {
  const store = await SqliteStore.open({ folder })
  try {
    await store.check()
    await checkRootKey(store, keyProvider)
    const keyring = new LocalKeyring(keyProvider, new SystemRandom(), (id) =>
      store.tenants.keys(id),
    )
    const samples = await openSamples({ clock: new SystemClock(), keyring, store }, depth)
    await abandonRuns(store)
    return samples
  } finally {
    await store.close()
  }
}

async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

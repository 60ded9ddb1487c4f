import { existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { checkRootKey } from '../access/root-key-check.ts'
import { SetUpError } from '../access/set-up-error.ts'
import { decryptAge } from '../adapters/age/age-file.ts'
import { AgeIdentity } from '../adapters/age/age-keys.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { makeDataFolder } from '../adapters/storage/sqlite/make-data-folder.ts'
import { SqliteStore } from '../adapters/storage/sqlite/store.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { ConfigError, readConfig } from '../config.ts'
import { discardDamaged, replaceDamagedKeys } from '../integrity/discard-damaged.ts'
import { checkAndRepairRootKey } from '../integrity/root-key-check-damage.ts'
import { verifyValues, type DamagedValue } from '../integrity/verify-values.ts'
import { tokenCountOf } from '../key-rotation/token-count.ts'
import { abandonRuns } from '../reactors/jobs/abandoned-runs.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { TenantKeyPurpose } from '../ports/keyring.ts'
import type { World } from '../ports/world.ts'
import { upgradeAndSay } from './audit-upgrade.ts'
import { readBackupHeader, type BackupHeader } from './backup-file.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { fileError, writeError } from './file-error.ts'
import { openRootKeys, rootKeyFileOf } from './open-root-keys.ts'
import { printable } from './printable.ts'

/**
 * `symbolon restore`: creates a data folder from a backup, and verifies that it opens before giving it its name.
 *
 * Stops before writing anything if the backup key or the root key does not match, and names the one required. Refuses a
 * folder that holds anything but the root key, and a backup with damaged values; `--skip-damaged` restores everything else and
 * lists the losses.
 */
export const restore: RunCommand = async ({ flags, out }) => {
  const config = readConfig(flags)
  const [from, identity] = [fileIn(flags, 'from'), await readIdentity(fileIn(flags, 'identity'))]
  const skipDamaged = flags['skip-damaged'] !== undefined
  const depth = skipDamaged || flags['all'] !== undefined ? 'all' : 'samples'
  const rootKeyFile = rootKeyFileOf(config)
  const folder = config.dataDir
  const there = existsSync(folder)
  if (there) await refuseFilled(folder, rootKeyFile)
  const keyProvider = await openRootKeys(config, null, { create: false })

  makeDataFolder(folder)
  const beside = join(folder, 'restoring')
  let restored = false
  try {
    const header = await unpack({ from, identity, beside, keyProvider })
    const opened = await tryOut(beside, keyProvider, { depth, skipDamaged, say: out })
    await rename(join(beside, 'symbolon.db'), join(folder, 'symbolon.db'))
    await syncFolder(folder)
    restored = true
    out(`restored to ${folder}: as of ${new Date(header.madeAt).toISOString()}`)
    out(`${opened.tenants} tenants, ${opened.tokens} tokens, ${opened.values} values decrypted`)
    for (const it of opened.lost) out(printable(`LOST: ${it}`))
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
  const identity = await AgeIdentity.parseFile(
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
  readonly keyProvider: RootKeys
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
        keyProvider.follow(rootKey.id)
        const check = checkRootKey({ tenants: { rootKeyCheck: async () => rootKey } }, keyProvider)
        await check.catch(unlessDamaged)
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

/** A damaged root key check is replaced later, if the root key proves to be the right one by the tenant keys. */
function unlessDamaged(error: unknown): void {
  if (!(error instanceof SetUpError) || error.code !== 'root-key-damaged') throw error
}

interface TriedVault {
  readonly tenants: number
  readonly tokens: number
  readonly values: number
  readonly lost: readonly string[]
}

interface Trying {
  readonly depth: 'samples' | 'all'
  readonly skipDamaged: boolean
  readonly say: CommandInput['out']
}

/**
 * Opens the vault as the service would, decrypts its values, abandons runs that the original has very likely run since, and closes
 * it again. Rejects if a value is damaged, unless `skipDamaged`.
 */
async function tryOut(
  folder: string,
  keyProvider: KeyProvider,
  { depth, skipDamaged, say }: Trying,
): Promise<TriedVault> {
  const store = await SqliteStore.open({ folder })
  try {
    await store.check()
    const [clock, random] = [new SystemClock(), new SystemRandom()]
    const keyring = new LocalKeyring(keyProvider, random, (id) => store.tenants.keys(id))
    const world = { clock, random, keyring, store }
    const check = await checkAndRepairRootKey(store, keyring, keyProvider)
    const lost = check === null ? [] : [`${check.kind} ${check.id}: a new one is made`]
    await upgradeAndSay(world, keyProvider, say)
    if (skipDamaged) lost.push(...(await repairKeys(world, keyring, keyProvider)))
    let values = 0
    for await (const step of verifyValues(world, { depth })) {
      values += step.values
      if (!skipDamaged) refuseDamage(step.damaged)
      else for (const it of step.damaged) lost.push(await discard(world, it))
    }
    if (lost.length > 0) while (await store.sweep(clock.now()));
    await abandonRuns(store)
    const tenantIds = await store.tenants.ids()
    const tokens = await Promise.all(tenantIds.map((id) => tokenCountOf(world, id)))
    return {
      tenants: tenantIds.length,
      tokens: tokens.reduce((sum, it) => sum + it, 0),
      values,
      lost,
    }
  } finally {
    await store.close()
  }
}

/** Replaces damaged keys. Returns the losses, as lines for the operator. */
async function repairKeys(
  world: Pick<World, 'clock' | 'store' | 'keyring'>,
  keyring: LocalKeyring,
  keyProvider: KeyProvider,
): Promise<string[]> {
  const replaced = await replaceDamagedKeys(world, keyring, keyProvider)
  return replaced.map(
    ({ tenantId, purpose, version }) =>
      `tenant_key ${purpose}/${version} of tenant ${tenantId}: ${LOST_WITH_KEY[purpose]}`,
  )
}

const LOST_WITH_KEY = {
  enc: 'a new key replaces it, and every value under the damaged one is lost',
  fp: 'a new key replaces it: fingerprints of earlier tokens do not match those of new ones',
  idx:
    'a new key replaces it: searches do not find earlier tokens by their indexes, and the audit log so far, ' +
    'applications, keys and sessions are taken to be genuine',
} as const satisfies Record<TenantKeyPurpose, string>

function refuseDamage(damaged: readonly DamagedValue[]): void {
  const [first] = damaged
  if (first === undefined) return
  throw new Error(
    `Cannot restore the backup: ${first.kind} ${first.id} of tenant ${first.tenantId} is damaged in it; ` +
      '--skip-damaged restores everything else and lists the losses',
  )
}

async function discard(
  world: Parameters<typeof discardDamaged>[0],
  { tenantId, kind, id, stored }: DamagedValue,
): Promise<string> {
  if ('purpose' in stored) throw new Error(`Cannot replace ${kind} ${id} of tenant ${tenantId}`)
  return `${kind} ${id} of tenant ${tenantId}: ${await discardDamaged(world, tenantId, stored)}`
}

async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

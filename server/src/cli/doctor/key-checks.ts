import { TimeSlice } from '../../base/time-slice.ts'
import { X509Certificate } from 'node:crypto'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SetUpError } from '../../access/set-up-error.ts'
import { FileKeyProvider } from '../../adapters/local-keyring/file-key-provider.ts'
import { hasRootKey } from '../../adapters/local-keyring/root-key-file.ts'
import { authorityFileOf } from '../../adapters/storage/postgres/connection-settings.ts'
import { parseCertificates } from '../../adapters/egress/trust.ts'
import { SystemClock } from '../../adapters/system/system-clock.ts'
import type { Config } from '../../config.ts'
import { damageOfRootKeyCheck } from '../../integrity/root-key-check-damage.ts'
import { rootKeyFileOf } from '../open-root-keys.ts'
import { readAuthorities } from '../read-authorities.ts'
import { CheckSkipped, failed, ok, warning, words, type Check, type Finding } from './check.ts'
import { existsDatabase, keyringOf, namesIn, type DoctorContext } from './context.ts'

/** Time limit for unwrapping tenant keys, in milliseconds; tenants not reached in time are not checked. Ours. */
const KEYS_MS_MAX = 8_000

/** The root key, the keys it wraps, and the certificates that are trusted. */
export const KEY_CHECKS: readonly Check[] = [
  { name: 'root-key-file', group: 'keys', run: checkRootKeyFile },
  {
    name: 'root-key-place',
    group: 'keys',
    run: async ({ config }) => {
      const file = rootKeyFileOf(config)
      const beside = dirname(resolve(file)) === resolve(config.dataDir)
      if (!beside || config.databaseUrl !== null) {
        return ok('The root key is kept apart from the data.')
      }
      return warning(
        'The root key is in the data folder, so a copy of the folder can be decrypted.',
        'For production, stop the service, move the key to another volume, and set SYMBOLON_ROOT_KEY_FILE to its path; ' +
          'for development, this is fine.',
      )
    },
  },
  {
    name: 'next-root-key',
    group: 'keys',
    applies: ({ rootKeyNextFile }) => rootKeyNextFile !== null,
    run: checkNextRootKey,
  },
  {
    name: 'root-key',
    group: 'keys',
    run: checkInstalledRootKey,
  },
  { name: 'tenant-keys', group: 'keys', run: checkTenantKeys },
  {
    name: 'certificates',
    group: 'keys',
    applies: (config) => certificateFiles(config).length > 0,
    run: checkCertificates,
  },
]

async function checkRootKeyFile({ config }: DoctorContext): Promise<Finding> {
  const file = rootKeyFileOf(config)
  if (config.rootKeyFile === null) namesIn(config.dataDir)
  let there: boolean
  try {
    there = await hasRootKey(file)
  } catch (error) {
    const remedy =
      "Correct SYMBOLON_ROOT_KEY_FILE, or give the service's user access to that folder."
    return failed(`${(error as Error).message}.`, remedy)
  }
  if (!there) {
    if (!existsDatabase(config)) {
      return ok(`${file} does not exist yet: the first start creates it.`)
    }
    return failed(
      `The root key file ${file} is missing, and without it no data can be decrypted.`,
      `Set SYMBOLON_ROOT_KEY_FILE to the root key of this vault, or restore its copy to ${file} with mode 0400.`,
    )
  }
  try {
    await FileKeyProvider.open(file, { createIfMissing: false })
  } catch (error) {
    return failed(`${(error as Error).message}.`, remedyOf(file))
  }
  return ok(`${file} is a root key that only its owner can read.`)
}

/** The message comes from the reader of the file; this returns the matching command. */
function remedyOf(file: string): string {
  const found = lstatSync(file)
  if (found.isFile() && (found.mode & 0o7777 & ~0o600) !== 0)
    return `Run chmod 0400 ${words(file)}.`
  return (
    `Restore the root key of this vault from its copy to ${file}: a regular file of 32 bytes with mode 0400, of the ` +
    "service's user, in a folder that is not world-writable."
  )
}

async function checkNextRootKey(context: DoctorContext): Promise<Finding> {
  const { config, vault } = context
  const file = config.rootKeyNextFile!
  let there: boolean
  try {
    there = await hasRootKey(file)
  } catch (error) {
    const remedy =
      "Correct SYMBOLON_ROOT_KEY_NEXT_FILE, or give the service's user access to that folder."
    return failed(`${(error as Error).message}.`, remedy)
  }
  if (!there) return await checkMissingNext(context, file)
  let next: FileKeyProvider
  try {
    next = await FileKeyProvider.open(file, { createIfMissing: false })
  } catch (error) {
    return failed(`${(error as Error).message}.`, remedyOf(file))
  }
  if ((await lostRootKey(context)) !== null) {
    throw new CheckSkipped('the vault uses a root key that is not held: see the check root-key')
  }
  const { tenants } = await vault()
  if ((await tenants.rootKeyCheck())?.id === next.id) {
    return warning(
      `The next root key, ${next.id}, is already in use.`,
      `Set SYMBOLON_ROOT_KEY_FILE to ${file}, unset SYMBOLON_ROOT_KEY_NEXT_FILE, and restart the service.`,
    )
  }
  return warning(
    `The next root key, ${next.id}, is configured but not in use.`,
    'Run symbolon keys rotate --root, or unset SYMBOLON_ROOT_KEY_NEXT_FILE.',
  )
}

/** Proposes a new key only if the vault uses the other one: else it would take the place of the only key of the data. */
async function checkMissingNext(context: DoctorContext, file: string): Promise<Finding> {
  const lost = await lostRootKey(context)
  if (lost !== null) {
    return failed(
      `The vault uses root key ${lost}, which SYMBOLON_ROOT_KEY_FILE does not hold, and ${file} does not exist.`,
      `Restore root key ${lost} from its copy to ${file} with mode 0400, or set SYMBOLON_ROOT_KEY_FILE to the file that holds it.`,
    )
  }
  return warning(
    `SYMBOLON_ROOT_KEY_NEXT_FILE names ${file}, which does not exist, so the root key was not replaced.`,
    `Run symbolon keys create-root --to ${words(file)} and restart the service, or unset SYMBOLON_ROOT_KEY_NEXT_FILE.`,
  )
}

/** Returns the id of the root key of the data, if none of the files holds it. Rejects with CheckSkipped. */
async function lostRootKey({ vault, rootKeys }: DoctorContext): Promise<string | null> {
  const [{ tenants }, { id }] = [await vault(), await rootKeys()]
  const installed = await tenants.rootKeyCheck()
  return installed === null || installed.id === id ? null : installed.id
}

async function checkInstalledRootKey(context: DoctorContext): Promise<Finding> {
  const { config, rootKeys, vault } = context
  const [{ tenants }, provider] = [await vault(), await rootKeys()]
  const installed = await tenants.rootKeyCheck()
  if (installed === null) throw new CheckSkipped('nothing is set up yet')
  const next = config.rootKeyNextFile
  if ((await lostRootKey(context)) !== null && next !== null && !(await hasRootKey(next))) {
    throw new CheckSkipped('its file is missing: see the check next-root-key')
  }
  const keyring = keyringOf(tenants, provider)
  try {
    const damage = await damageOfRootKeyCheck({ tenants }, keyring, provider, installed)
    if (damage === null) return ok(`Root key ${provider.id} is the one of the data.`)
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error
    if (error.code !== 'root-key-damaged') return failed(error.message, RIGHT_KEY)
    return failed(
      `Root key ${provider.id} has the right id, but decrypts neither the value that proves it nor any key of a tenant.`,
      'Compare the root key file with its copy, and restore that if they differ; if they are equal, restore a backup ' +
        'that was made before the damage (symbolon restore).',
    )
  }
  return warning(
    `The value that proves root key ${provider.id} is damaged, but the key opens tenant keys, so it is the right one.`,
    'Start the service again: the next start repairs that value.',
  )
}

async function checkTenantKeys({ vault, keyring: open }: DoctorContext): Promise<Finding> {
  const [{ tenants }, keyring] = [await vault(), await open()]
  const clock = new SystemClock()
  const ids = await tenants.ids()
  if (ids.length === 0) {
    return warning(
      'The vault has no tenant, so no API key can call it.',
      'Stop the service, run symbolon init, and start the service again.',
    )
  }
  const since = clock.elapsed()
  const slice = new TimeSlice(clock)
  const damaged: string[] = []
  let opened = 0
  for (const id of ids) {
    if (clock.elapsed() - since > KEYS_MS_MAX) break
    for (const it of await tenants.keys(id)) {
      if (await keyring.isReadable(id, it)) continue
      damaged.push(`version ${it.version} of the ${it.purpose} key of tenant ${id}`)
    }
    opened++
    await slice.yieldIfDue()
  }
  if (damaged.length > 0) {
    return failed(
      `The root key does not unwrap ${damaged.length} tenant keys, such as ${damaged[0]}.`,
      'The keys are damaged: restore a backup that holds them intact (symbolon restore), or make a new backup and restore it ' +
        'with --skip-damaged. symbolon verify names every damaged value.',
    )
  }
  if (opened < ids.length)
    return ok(
      `The keys of ${opened} of ${ids.length} tenants were unwrapped; there was no time for the others.`,
    )
  return ok(`The keys of all ${ids.length} tenants can be unwrapped.`)
}

async function checkCertificates({ config, machine }: DoctorContext): Promise<Finding> {
  let count = 0
  const expired: string[] = []
  for (const { file, setting } of certificateFiles(config)) {
    let found: readonly string[]
    try {
      found = setting === 'SYMBOLON_EXTRA_CA_FILE' ? readAuthorities(file) : authoritiesIn(file)
    } catch (error) {
      return failed(
        (error as Error).message,
        `Set ${setting} to a PEM file of certificates that the service's user may read.`,
      )
    }
    count += found.length
    for (const pem of found) {
      const { subject, validToDate } = new X509Certificate(pem)
      if (validToDate.getTime() >= machine.now()) continue
      const name = subject.replaceAll('\n', ', ')
      expired.push(`${name} in ${file} (${validToDate.toISOString().slice(0, 10)})`)
    }
  }
  if (expired.length === 0) return ok(`${count} additional trusted certificates are valid.`)
  return warning(
    `These trusted certificates have expired: ${expired.join('; ')}.`,
    'Replace them in the file with their successors, and restart the service.',
  )
}

function authoritiesIn(file: string): string[] {
  if (!existsSync(file)) throw new Error(`sslrootcert is '${file}', which does not exist.`)
  const found = parseCertificates(readFileSync(file, 'utf8'))
  if (found.length === 0) throw new Error(`sslrootcert is '${file}', which holds no certificate.`)
  return found
}

/** Returns the files of certificates in the settings. */
function certificateFiles({
  extraCaFile,
  databaseUrl,
}: Config): { readonly file: string; readonly setting: string }[] {
  const ofDatabase = databaseUrl === null ? null : authorityFileOf(databaseUrl)
  return [
    ...(extraCaFile === null ? [] : [{ file: extraCaFile, setting: 'SYMBOLON_EXTRA_CA_FILE' }]),
    ...(ofDatabase === null ? [] : [{ file: ofDatabase, setting: 'SYMBOLON_DATABASE_URL' }]),
  ]
}

const RIGHT_KEY =
  'Set SYMBOLON_ROOT_KEY_FILE to the root key of this vault, or restore the data that belongs to this root key.'

import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import { readBesideSqliteService } from '../adapters/storage/sqlite/read-beside-service.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { isUuid } from '../base/id.ts'
import { VERIFY_REPORT_MS } from '../base/limits.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import { damageOfRootKeyCheck } from '../integrity/root-key-check-damage.ts'
import { verifyValues, type DamagedValue } from '../integrity/verify-values.ts'
import type { KeyProvider } from '../ports/key-provider.ts'
import type { TenantReader } from '../ports/store.ts'
import type { RootKeyCheck } from '../ports/stored.ts'
import type { RunCommand } from './command.ts'
import { openRootKeys } from './open-root-keys.ts'
import { printable } from './printable.ts'
import { VerifyProgress, type DamageName } from './verify-progress.ts'

/**
 * `symbolon verify`: decrypts every value and names each that is damaged, by kind and internal id.
 *
 * Read-only; may run beside the service. With `--resume FILE`, an interrupted run continues where it stopped. Exits with 0 if every
 * value is readable, with 1 if one is damaged or the run cannot finish.
 */
export const verify: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  const json = flags['json'] !== undefined
  const tenant = flags['tenant']
  if (tenant !== undefined && !isUuid(tenant)) {
    throw new ConfigError(`--tenant is '${tenant}', but must be the id of a tenant.`)
  }
  const { tenants, close } = await openTenants(config)
  try {
    const installed = await tenants.rootKeyCheck()
    if (installed === null) throw new Error('Cannot verify the vault: nothing is set up in it')
    if (tenant !== undefined && (await tenants.find(tenant)) === null) {
      throw new Error(`There is no tenant ${tenant}`)
    }
    const rootKeys = await openRootKeys(config, installed, { create: false })
    const progress = await VerifyProgress.open(flags['resume'], { rootKey: installed.id, tenant })
    const report = (it: DamageName): void => out(json ? JSON.stringify(it) : sentenceOf(it))
    for (const it of progress.damaged) report(it)
    const found = findDamage({ tenants, rootKeys, installed, tenant }, progress)
    for await (const it of found) {
      if (typeof it === 'string') err(it)
      else report(it)
    }
    await progress.finish()
    const { values, damaged } = progress
    out(
      json
        ? JSON.stringify({ values, damaged: damaged.length })
        : `${values} values decrypted, ${damaged.length} damaged`,
    )
    return damaged.length === 0 ? 0 : 1
  } finally {
    await close()
  }
}

async function openTenants({ databaseUrl, dataDir }: Config) {
  if (databaseUrl === null) return readBesideSqliteService(dataDir)
  const { readBesidePostgresServers } =
    await import('../adapters/storage/postgres/read-beside-service.ts')
  return await readBesidePostgresServers(databaseUrl)
}

export interface Verifying {
  readonly tenants: TenantReader
  readonly rootKeys: KeyProvider
  readonly installed: RootKeyCheck
  readonly tenant: string | undefined
}

/** Yields each damaged value, and a progress line every VERIFY_REPORT_MS. */
export async function* findDamage(
  { tenants, rootKeys, installed, tenant }: Verifying,
  progress: VerifyProgress,
): AsyncIterable<DamageName | string> {
  const clock = new SystemClock()
  const keyring = new LocalKeyring(rootKeys, new SystemRandom(), (id) => tenants.keys(id))
  const vault = { clock, keyring, store: { tenants } }
  const check = await damageOfRootKeyCheck({ tenants }, keyring, rootKeys, installed)
  if (progress.next === undefined) {
    const damaged = check === null ? [] : [{ tenant: null, ...check }]
    yield* damaged
    await progress.add({ values: 1, damaged })
  }
  let reported = clock.elapsed()
  for await (const step of verifyValues(vault, {
    depth: 'all',
    tenantId: tenant,
    from: progress.next,
  })) {
    if (step.damaged.length > 0) await refuseReplaced(tenants, rootKeys)
    const damaged = step.damaged.map(nameOf)
    yield* damaged
    await progress.add({ ...step, damaged })
    if (clock.elapsed() - reported < VERIFY_REPORT_MS) continue
    reported = clock.elapsed()
    yield `${progress.values} values decrypted, at ${step.next.after?.table} of tenant ${step.next.tenantId}`
  }
}

/** Throws if the root key was replaced during the run: the keys are then intact, but wrapped by a root key unknown here. */
async function refuseReplaced(tenants: TenantReader, rootKeys: KeyProvider): Promise<void> {
  const installed = await tenants.rootKeyCheck()
  if (installed?.id === rootKeys.id) return
  throw new Error('The root key was replaced meanwhile: run the command again with the new one')
}

export function nameOf({ tenantId, kind, id }: DamagedValue): DamageName {
  return { tenant: tenantId, kind, id }
}

export function sentenceOf({ tenant, kind, id }: DamageName): string {
  return printable(`DAMAGED: ${kind} ${id}${tenant === null ? '' : ` of tenant ${tenant}`}`)
}

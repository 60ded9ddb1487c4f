import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { PostgresAuditLogSnapshot } from '../adapters/postgres/audit-log-snapshot.ts'
import { openSqliteAuditLog } from '../adapters/sqlite/audit-log-snapshot.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { isUuid } from '../base/id.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import { verifyAuditLog, type AuditVerdict } from '../audit/verification.ts'
import type { RunCommand } from './command.ts'
import { openRootKeys } from './open-root-keys.ts'

/**
 * `symbolon audit verify`: reads the audit log and verifies its hash chain and checkpoints.
 *
 * Read-only; may run beside the service. Exits with 0 if every tenant's audit log is intact, with 1 if one is not or cannot
 * be read.
 */
export const auditVerify: RunCommand = async ({ flags, out }) => {
  const config = readConfig(flags)
  const tenant = flags['tenant']
  if (tenant !== undefined && !isUuid(tenant)) {
    throw new ConfigError(`--tenant is '${tenant}', but must be the id of a tenant.`)
  }
  const opened = await openAuditLog(config)
  try {
    const installed = await opened.tenants.rootKeyCheck()
    const provider = await openRootKeys(config, installed, { create: false })
    const keyring = new LocalKeyring(provider, new SystemRandom(), (id) => opened.tenants.keys(id))
    const world = { clock: new SystemClock(), keyring, store: opened }
    const deleted = new Set((await opened.tenants.deleted()).map((it) => it.id))
    let intact = true
    for (const id of tenant === undefined ? await tenantIds(opened) : [tenant]) {
      if (tenant !== undefined && (await opened.tenants.find(id)) === null) {
        throw new Error(`There is no tenant ${id}`)
      }
      if (deleted.has(id) && (await opened.tenants.find(id)) === null) {
        out(flags['json'] === undefined ? `tenant ${id}: deleted` : deletedJsonOf(id))
        continue
      }
      const verdict = await verifyAuditLog(world, id)
      intact &&= verdict.flaw === null
      out(flags['json'] === undefined ? sentenceOf(verdict) : jsonOf(verdict))
    }
    return intact ? 0 : 1
  } finally {
    await opened.close()
  }
}

/** Opens a consistent snapshot, in the data folder or in PostgreSQL. */
async function openAuditLog({ databaseUrl, dataDir }: Config): Promise<PostgresAuditLogSnapshot> {
  if (databaseUrl !== null) {
    const { openPostgresAuditLog } = await import('../adapters/postgres/audit-log-snapshot.ts')
    return await openPostgresAuditLog(databaseUrl)
  }
  const { tenants, auditLog, close } = openSqliteAuditLog(dataDir)
  return { tenants, auditLog, close: async () => close() }
}

/** Includes tenants whose audit log is gone. */
async function tenantIds({ tenants, auditLog }: PostgresAuditLogSnapshot): Promise<string[]> {
  return [...new Set([...(await tenants.ids()), ...(await auditLog.tenantIds('all'))])]
}

function sentenceOf({ tenantId, flaw, first, last, hash, sealed }: AuditVerdict): string {
  if (flaw !== null) return `tenant ${tenantId}: BROKEN: event ${flaw.number} ${flaw.what}`
  return (
    `tenant ${tenantId}: intact, events ${first} to ${last}, checkpoint at ${sealed}, ` +
    `ends with ${hash}`
  )
}

/** The tenant's keys are gone, so the rest of its audit log that is not deleted yet cannot be verified. */
function deletedJsonOf(tenantId: string): string {
  return JSON.stringify({ tenant: tenantId, deleted: true })
}

/** Renders one line per tenant. */
function jsonOf({ tenantId, flaw, ...rest }: AuditVerdict): string {
  return JSON.stringify({
    tenant: tenantId,
    intact: flaw === null,
    ...rest,
    broken: flaw === null ? null : { entry: flaw.number, what: flaw.what },
  })
}

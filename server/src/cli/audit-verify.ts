import { precedesCheckpoints } from '../access/root-key-check.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { PostgresAuditLogSnapshot } from '../adapters/postgres/audit-log-snapshot.ts'
import { openSqliteAuditLog } from '../adapters/sqlite/audit-log-snapshot.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { isUuid } from '../base/id.ts'
import { AUDIT_CHECKPOINT_LAG_MS_MAX, VERIFY_REPORT_MS } from '../base/limits.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import {
  verifyAuditLog,
  type AuditPoint,
  type AuditVerdict,
  type UncoveredEvents,
} from '../audit/verification.ts'
import { AuditProgress } from './audit-progress.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { openRootKeys } from './open-root-keys.ts'

/**
 * `symbolon audit verify`: reads the audit log and verifies its hash chain and checkpoints.
 *
 * Read-only; may run beside the service. With `--resume FILE`, an interrupted run continues where it stopped. Exits with 0 if every
 * tenant's audit log is intact, with 1 if one is not or cannot be read.
 */
export const auditVerify: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  const json = flags['json'] !== undefined
  const tenant = flags['tenant']
  if (tenant !== undefined && !isUuid(tenant)) {
    throw new ConfigError(`--tenant is '${tenant}', but must be the id of a tenant.`)
  }
  const opened = await openAuditLog(config)
  try {
    const { tenants } = opened
    const installed = await tenants.rootKeyCheck()
    const provider = await openRootKeys(config, installed, { create: false })
    const keyring = new LocalKeyring(provider, new SystemRandom(), (id) => tenants.keys(id))
    const world = { clock: new SystemClock(), keyring, store: opened }
    const older = installed !== null && (await precedesCheckpoints(provider, installed))
    const scope = { rootKey: installed?.id ?? '', tenant }
    const progress = await AuditProgress.open(flags['resume'], scope)
    const deleted = new Set((await tenants.deleted()).map((it) => it.id))
    let intact = true
    for (const id of tenant === undefined ? await tenantIds(opened) : [tenant]) {
      if (tenant !== undefined && (await tenants.find(id)) === null) {
        throw new Error(`There is no tenant ${id}`)
      }
      if (deleted.has(id) && (await tenants.find(id)) === null) {
        out(json ? deletedJsonOf(id) : `tenant ${id}: deleted`)
        continue
      }
      let verdict: AuditVerdict
      try {
        verdict =
          progress.verdictOf(id) ??
          (await verifyAuditLog(world, id, {
            checkpoint: older ? 'left to the service' : 'required',
            resume: progress.at,
            onPoint: reporter(world.clock, progress, err),
          }))
      } catch (error) {
        if (error instanceof ConfigError) throw error
        // Rejects if the store is gone. Otherwise the others can be verified.
        await tenants.rootKeyCheck()
        intact = false
        out(unverifiedLineOf(id, error, json))
        continue
      }
      if (progress.verdictOf(id) === null) await progress.end(verdict)
      intact &&= verdict.flaw === null
      if (json) out(jsonOf(verdict))
      else for (const it of linesOf(verdict, world.clock.now())) out(it)
    }
    await progress.finish()
    if (!json) {
      for (const it of older ? [NOT_UPGRADED, ...NEVER_COVERED] : NEVER_COVERED) out(it)
    }
    return intact ? 0 : 1
  } finally {
    await opened.close()
  }
}

/** Returns a function that saves the progress and reports it, every VERIFY_REPORT_MS. */
function reporter(
  clock: SystemClock,
  progress: AuditProgress,
  err: CommandInput['err'],
): (point: AuditPoint) => Promise<void> {
  let reported = clock.elapsed()
  return async (point) => {
    if (clock.elapsed() - reported < VERIFY_REPORT_MS) return
    reported = clock.elapsed()
    await progress.reach(point)
    err(
      `${point.events} events verified, at event ${point.position.number} of tenant ${point.tenantId}`,
    )
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
  return [...new Set([...(await tenants.ids()), ...(await auditLog.tenantIds('all'))])].sort()
}

function linesOf(verdict: AuditVerdict, now: number): string[] {
  const { tenantId, flaw, first, last, events, hash, sealed, sealedAt, uncovered } = verdict
  const lines = [
    flaw === null
      ? `tenant ${tenantId}: intact, events ${first} to ${last}, checkpoint at ${sealed}, ends with ${hash}`
      : `tenant ${tenantId}: BROKEN: event ${flaw.number} ${flaw.what}`,
    `  checked: ${events} events${spanOf(verdict)}`,
    sealedAt === null
      ? '  checkpoint: none that is genuine'
      : `  checkpoint: of ${timeOf(sealedAt)}, covers events up to ${sealed}`,
  ]
  for (const it of uncovered) {
    const late = it.why === 'after the checkpoint' && isLate(verdict, now)
    lines.push(`  not covered: events ${it.first} to ${it.last}: ${late ? LATE : WHY[it.why]}`)
  }
  return lines
}

function spanOf({ from, to }: AuditVerdict): string {
  return from === null || to === null ? '' : `, from ${timeOf(from)} to ${timeOf(to)}`
}

/** An attacker may have written any time, also one that no date can express. */
function timeOf(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms after 1970` : date.toISOString()
}

function isLate({ to }: AuditVerdict, now: number): boolean {
  return to !== null && now - to > AUDIT_CHECKPOINT_LAG_MS_MAX
}

const WHY = {
  removed: 'removed as older than the retention period; the next event continues from them',
  'after the checkpoint':
    'newer than the checkpoint, so that only their hashes protect them; a running service covers them within a second',
  'after the flaw': 'wrong, or after what is wrong',
} as const satisfies Record<UncoveredEvents['why'], string>

const LATE =
  'newer than the checkpoint, so that only their hashes protect them; no service has covered them: see record_unsealed in its log'

/** Limits of every verification. */
const NEVER_COVERED = [
  'Never covered: events of open transactions, which join the audit log when the transaction commits; and a database that was',
  'put back as a whole, with its audit log.',
]

const NOT_UPGRADED =
  'This database was written by an older version and not upgraded: a missing checkpoint is accepted in the first minute of a tenant. Start the service once.'

/** An attacker may have written numbers that cannot be read, or removed the tenant's keys. */
function unverifiedLineOf(tenant: string, error: unknown, json: boolean): string {
  const why = error instanceof Error ? error.message : String(error)
  if (json) return JSON.stringify({ tenant, intact: false, not_verified: why })
  return `tenant ${tenant}: NOT VERIFIED: ${why}`
}

/** The tenant's keys are gone, so the rest of its audit log that is not deleted yet cannot be verified. */
function deletedJsonOf(tenantId: string): string {
  return JSON.stringify({ tenant: tenantId, deleted: true })
}

/** Renders one line per tenant. */
function jsonOf({ tenantId, flaw, from, to, sealedAt, uncovered, ...rest }: AuditVerdict): string {
  return JSON.stringify({
    tenant: tenantId,
    intact: flaw === null,
    ...rest,
    from: from === null ? null : timeOf(from),
    to: to === null ? null : timeOf(to),
    sealed_at: sealedAt === null ? null : timeOf(sealedAt),
    not_covered: uncovered,
    broken: flaw === null ? null : { entry: flaw.number, what: flaw.what },
  })
}

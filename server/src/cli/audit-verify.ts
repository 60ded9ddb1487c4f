import { precedesAccessStates, precedesCheckpoints } from '../access/root-key-check.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { PostgresAuditLogSnapshot } from '../adapters/storage/postgres/audit-log-snapshot.ts'
import { openSqliteAuditLog } from '../adapters/storage/sqlite/audit-log-snapshot.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { isUuid } from '../base/id.ts'
import { AUDIT_CHECKPOINT_LAG_MS_MAX, VERIFY_REPORT_MS } from '../base/limits.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import { findTip, type TipMatch } from '../audit/find-tip.ts'
import { tipText, type RememberedTip } from '../ports/remembered-tip.ts'
import {
  isAccessSealed,
  verifyAccessRows,
  type AccessVerdict,
} from '../audit/verify-access-rows.ts'
import {
  verifyAuditLog,
  type AuditPoint,
  type AuditVerdict,
  type UncoveredEvents,
} from '../audit/verification.ts'
import {
  deletedNoteOf,
  flawOfComparison,
  isMatch,
  jsonOfComparison,
  jsonOfGone,
  lineOfGone,
  linesOfComparison,
  notesOfComparison,
} from './against-report.ts'
import { absenceOf, flawOfTip, linesOfTip, readTip } from './tip-report.ts'
import { AuditProgress } from './audit-progress.ts'
import { compareWithFiles, openCheckpointLines } from './checkpoint-lines.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { openRootKeys } from './open-root-keys.ts'

/**
 * `symbolon audit verify`: reads the audit log and verifies its hash chain and checkpoints, and the applications, keys and
 * sessions that those seal.
 *
 * Read-only; may run beside the service. With `--resume FILE`, an interrupted run continues where it stopped. Exits with 0 if every
 * tenant's audit log is intact, with 1 if one is not or cannot be read. With `--against FILE...`, also compares the checkpoints in
 * these files, which are copies of the service's log or of its file of checkpoints; with `--tip`, the event that the log or an
 * earlier run had as the last one.
 */
export const auditVerify: RunCommand = async (input) => {
  const { flags, out, err } = input
  const config = readConfig(flags)
  const { files, json, tenant, tip } = optionsOf(input)
  const lines = await openCheckpointLines(files)
  const opened = await openAuditLog(config).catch(async (error: unknown) => {
    await lines.close()
    throw error
  })
  try {
    const { tenants } = opened
    const installed = await tenants.rootKeyCheck()
    const provider = await openRootKeys(config, installed, { create: false })
    const keyring = new LocalKeyring(provider, new SystemRandom(), (id) => tenants.keys(id))
    const world = { clock: new SystemClock(), keyring, store: opened }
    const unsealed = installed !== null && (await precedesAccessStates(provider, installed))
    const older = installed !== null && (await precedesCheckpoints(provider, installed))
    const scope = { rootKey: installed?.id ?? '', tenant }
    const progress = await AuditProgress.open(flags['resume'], scope)
    const deleted = new Set((await tenants.deleted()).map((it) => it.id))
    const compared =
      files.length === 0 ? null : await compareWithFiles(world, lines, { tenant, err })
    let intact = true
    for (const it of compared?.tenants.values() ?? []) {
      intact &&= isMatch(it)
      if (it.tenant === 'gone') out(json ? jsonOfGone(it) : lineOfGone(it))
    }
    const isGone = tenant !== undefined && compared?.tenants.get(tenant)?.tenant === 'gone'
    for (const id of isGone ? [] : tenant === undefined ? await tenantIds(opened) : [tenant]) {
      if (tenant !== undefined && (await tenants.find(id)) === null) {
        throw new Error(absenceOf(id, tip))
      }
      const against = compared?.tenants.get(id)
      if (deleted.has(id) && (await tenants.find(id)) === null) {
        const found = compared === null ? {} : { against: jsonOfComparison(against) }
        const note = tip === null ? deletedNoteOf(against) : TIP_OF_DELETED
        out(json ? deletedJsonOf(id, found) : `tenant ${id}: deleted${note}`)
        continue
      }
      let read: AuditVerdict
      let access: AccessVerdict | null = null
      let match: TipMatch | null = null
      try {
        read =
          progress.verdictOf(id) ??
          (await verifyAuditLog(world, id, {
            checkpoint: older ? 'left to the service' : 'required',
            resume: progress.at,
            onPoint: reporter(world.clock, progress, err),
          }))
        if (!unsealed || (await isAccessSealed(opened, id)))
          access = await verifyAccessRows(world, id)
        if (tip !== null) match = await findTip(opened.auditLog, id, tip)
      } catch (error) {
        if (error instanceof ConfigError) throw error
        // Rejects if the store is gone. Otherwise the others can be verified.
        await tenants.rootKeyCheck()
        intact = false
        out(unverifiedLineOf(id, error, json))
        continue
      }
      if (progress.verdictOf(id) === null) await progress.end(read)
      const ofTip = tip === null || match === null ? null : flawOfTip(tip, match)
      const verdict = { ...read, flaw: read.flaw ?? flawOfComparison(against) ?? ofTip }
      intact &&= verdict.flaw === null && (access === null || access.flaw === null)
      if (json) {
        const found = compared === null ? {} : { against: jsonOfComparison(against) }
        out(jsonOf(verdict, access, tip === null ? found : { ...found, compared_tip: match }))
      } else {
        for (const it of linesOf(verdict, access, world.clock.now())) out(it)
        for (const it of linesOfTip(tip, match, verdict.flaw === ofTip)) out(it)
        if (compared !== null) for (const it of linesOfComparison(against)) out(it)
      }
    }
    if (compared !== null) for (const it of notesOfComparison(compared)) (json ? err : out)(it)
    await progress.finish()
    if (!json) {
      if (older) out(NOT_UPGRADED)
      else if (unsealed) out(NOT_SEALED)
      for (const it of compared === null ? NEVER_COVERED : NEVER_COVERED_COMPARED) out(it)
    }
    return intact ? 0 : 1
  } finally {
    await opened.close()
    await lines.close()
  }
}

interface AuditVerifyFlags {
  /** Those of `--against`. */
  readonly files: readonly string[]
  readonly json: boolean
  readonly tenant: string | undefined
  readonly tip: RememberedTip | null
}

function optionsOf({ flags, words }: Pick<CommandInput, 'flags' | 'words'>): AuditVerifyFlags {
  const { against, json, tenant, tip } = flags
  if (against === undefined && words.length > 0) {
    throw new ConfigError(`'${words[0]}' is a file of checkpoints only after --against.`)
  }
  if (tenant !== undefined && !isUuid(tenant)) {
    throw new ConfigError(`--tenant is '${tenant}', but must be the id of a tenant.`)
  }
  const files = [against, ...words].filter((it) => it !== undefined)
  return { files, json: json !== undefined, tenant, tip: readTip(tip, tenant) }
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
    const { openPostgresAuditLog } =
      await import('../adapters/storage/postgres/audit-log-snapshot.ts')
    return await openPostgresAuditLog(databaseUrl)
  }
  const { close, ...readers } = openSqliteAuditLog(dataDir)
  return { ...readers, close: async () => close() }
}

/** Includes tenants whose audit log is gone. */
async function tenantIds({ tenants, auditLog }: PostgresAuditLogSnapshot): Promise<string[]> {
  return [...new Set([...(await tenants.ids()), ...(await auditLog.tenantIds('all'))])].sort()
}

function linesOf(verdict: AuditVerdict, access: AccessVerdict | null, now: number): string[] {
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
  if (access !== null) {
    const { revision, flaw } = access
    lines.push(
      flaw === null ? `  access: intact, revision ${revision}` : `  access: BROKEN: ${flaw}`,
    )
  }
  if (flaw === null) lines.push(`  tip: ${tipText({ number: last, hash })}`)
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

/** The same, if checkpoints were compared. */
const NEVER_COVERED_COMPARED = [
  'Never covered: events of open transactions, which join the audit log when the transaction commits; and a database that was',
  'put back as a whole, with its audit log, to a time after the newest checkpoint in the files of --against.',
]

const TIP_OF_DELETED = '; its keys are gone, so that the event of --tip is not compared'

const NOT_UPGRADED =
  'This database was written by an older version and not upgraded: a missing checkpoint is accepted in the first minute of a tenant. Start the service once.'

const NOT_SEALED =
  'This database was written by an older version and not upgraded: applications, keys and sessions are not sealed yet. Start the service once.'

/** An attacker may have written numbers that cannot be read, or removed the tenant's keys. */
function unverifiedLineOf(tenant: string, error: unknown, json: boolean): string {
  const why = error instanceof Error ? error.message : String(error)
  if (json) return JSON.stringify({ tenant, intact: false, not_verified: why })
  return `tenant ${tenant}: NOT VERIFIED: ${why}`
}

/** The tenant's keys are gone, so the rest of its audit log that is not deleted yet cannot be verified. */
function deletedJsonOf(tenantId: string, found: object): string {
  return JSON.stringify({ tenant: tenantId, deleted: true, ...found })
}

/** Renders one line per tenant. */
function jsonOf(
  { tenantId, flaw, from, to, sealedAt, uncovered, ...rest }: AuditVerdict,
  access: AccessVerdict | null,
  found: object,
): string {
  return JSON.stringify({
    tenant: tenantId,
    intact: flaw === null,
    ...rest,
    tip: flaw === null ? tipText({ number: rest.last, hash: rest.hash }) : null,
    from: from === null ? null : timeOf(from),
    to: to === null ? null : timeOf(to),
    sealed_at: sealedAt === null ? null : timeOf(sealedAt),
    not_covered: uncovered,
    broken: flaw === null ? null : { entry: flaw.number, what: flaw.what },
    access: access === null ? null : { ...access, intact: access.flaw === null },
    ...found,
  })
}

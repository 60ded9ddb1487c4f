import { existsSync } from 'node:fs'
import { isDamage } from '../../adapters/storage/sqlite/unusable-database.ts'
import { SystemClock } from '../../adapters/system/system-clock.ts'
import type { LocalKeyring } from '../../adapters/local-keyring/local-keyring.ts'
import { precedesAccessStates, precedesCheckpoints } from '../../access/root-key-check.ts'
import { isAccessSealed, verifyAccessRows } from '../../audit/verify-access-rows.ts'
import { flawOfNewest } from '../../audit/verification.ts'
import { AUDIT_CHECKPOINT_LAG_MS_MAX, AUDIT_SWEEP_MS } from '../../base/limits.ts'
import { TimeSlice } from '../../base/time-slice.ts'
import { timeOfAuditEvent } from '../../ports/audit-log.ts'
import { flawOfCheckpointFile } from '../checkpoint-file.ts'
import { CheckSkipped, failed, ok, warning, type Check, type Finding } from './check.ts'
import type { DoctorContext } from './context.ts'

/** Time limit in milliseconds; tenants not reached in time are not checked. Ours. */
const TENANTS_MS_MAX = 8_000

/** Checks the end of every tenant's audit log; `symbolon audit verify` reads all of it. */
export const AUDIT_CHECKS: readonly Check[] = [
  { name: 'audit-chain', group: 'audit log', run: checkNewest },
  { name: 'audit-checkpoints', group: 'audit log', run: checkCheckpoints },
  { name: 'access-rows', group: 'audit log', run: checkAccessRows },
  { name: 'audit-retention', group: 'audit log', run: checkRetention },
  {
    name: 'audit-checkpoint-file',
    group: 'audit log',
    applies: (config) => config.auditCheckpointFile !== null,
    run: checkCheckpointFile,
  },
]

async function checkNewest({ vault, keyring: open, rootKeys }: DoctorContext): Promise<Finding> {
  const [{ tenants, auditLog }, keyring] = [await vault(), await open()]
  const installed = await tenants.rootKeyCheck()
  const older = installed !== null && (await precedesCheckpoints(await rootKeys(), installed))
  const rule = older ? 'left to the service' : 'required'
  const clock = new SystemClock()
  const since = clock.elapsed()
  const slice = new TimeSlice(clock)
  let count = 0
  for (const id of await tenants.ids()) {
    if (clock.elapsed() - since > TENANTS_MS_MAX) break
    await requireKeys(keyring, id)
    const flaw = await flawOfNewest({ clock, keyring, store: { auditLog } }, id, rule)
    if (flaw !== null) {
      return failed(
        `The audit log of tenant ${id} is broken: event ${flaw.number} ${flaw.what}.`,
        `Run symbolon audit verify --tenant ${id} and keep its output; then restore a backup, which has the original events.`,
      )
    }
    count++
    await slice.yieldIfDue()
  }
  return ok(`The newest events of ${count} tenants continue genuine checkpoints.`)
}

async function checkAccessRows({
  vault,
  keyring: open,
  rootKeys,
}: DoctorContext): Promise<Finding> {
  const [{ tenants, auditLog, accessRows }, keyring] = [await vault(), await open()]
  const installed = await tenants.rootKeyCheck()
  const older = installed !== null && (await precedesAccessStates(await rootKeys(), installed))
  const clock = new SystemClock()
  const since = clock.elapsed()
  let count = 0
  for (const id of await tenants.ids()) {
    if (clock.elapsed() - since > TENANTS_MS_MAX) break
    await requireKeys(keyring, id)
    if (older && !(await isAccessSealed({ auditLog }, id))) continue
    const world = { clock, keyring, store: { auditLog, accessRows } }
    const { flaw } = await verifyAccessRows(world, id)
    if (flaw !== null) {
      return failed(
        `Of tenant ${id}, ${flaw}.`,
        'Compare its applications and keys (GET /applications) with the audit log (GET /logs); then restore a backup.',
      )
    }
    count++
  }
  if (older && count === 0) {
    return ok('Applications, keys and sessions are sealed at the next start.')
  }
  return ok(
    `The applications, keys and sessions of ${count} tenants are as the service wrote them.`,
  )
}

async function requireKeys(keyring: LocalKeyring, tenantId: string): Promise<void> {
  try {
    await keyring.open(tenantId)
  } catch (error) {
    if (isDamage(error)) throw error
    throw new CheckSkipped(
      `the keys of tenant ${tenantId} cannot be unwrapped: see the check tenant-keys`,
    )
  }
}

async function checkCheckpoints({ vault, service, machine }: DoctorContext): Promise<Finding> {
  const { tenants, auditLog } = await vault()
  const late: string[] = []
  for (const id of await auditLog.tenantIds('beyond-checkpoint')) {
    // The events of a deleted tenant need no checkpoint: they are removed, and its keys are gone.
    if ((await tenants.find(id)) === null) continue
    const state = await auditLog.state(id)
    const covered = state?.checkpoint?.last.number ?? 0
    const [row] = await auditLog.rowsAfter(id, covered, 1)
    if (row === undefined) continue
    if (machine.now() - timeOfAuditEvent(row.entry) > AUDIT_CHECKPOINT_LAG_MS_MAX) late.push(id)
  }
  if (late.length === 0) return ok('No event has waited long for its checkpoint.')
  if (!service.running) {
    return ok(`The newest events of ${late.length} tenants get a checkpoint at the next start.`)
  }
  return failed(
    `Events of ${late.length} tenants, such as ${late[0]}, have waited for a checkpoint for over a minute, although a service is running.`,
    `Run symbolon audit verify --tenant ${late[0]}, and look for record_unsealed and audit_checkpoint_failed in the service log: if the audit log is broken, ` +
      'restore a backup (symbolon restore).',
  )
}

async function checkRetention({
  config,
  vault,
  service,
  machine,
}: DoctorContext): Promise<Finding> {
  const { tenants, auditLog } = await vault()
  const limit = config.auditRetentionDays
  // A sweep may just be due.
  const before = machine.now() - limit * DAY_MS - 2 * AUDIT_SWEEP_MS
  const late: string[] = []
  for (const id of await tenants.ids()) {
    const state = await auditLog.state(id)
    if (state === null) continue
    const [first] = await auditLog.rowsAfter(id, state.removed.number, 1)
    if (first !== undefined && timeOfAuditEvent(first.entry) < before) late.push(id)
  }
  if (late.length === 0)
    return ok(`No audit event is older than the retention period of ${limit} days.`)
  return warning(
    `${late.length} tenants, such as ${late[0]}, have audit events older than the retention period of ${limit} days.`,
    service.running
      ? `Run symbolon audit verify --tenant ${late[0]}: broken events are not removed (record_not_swept in the service log).`
      : 'Start the service (symbolon serve), which removes them.',
  )
}

async function checkCheckpointFile({ config, service }: DoctorContext): Promise<Finding> {
  const file = config.auditCheckpointFile!
  const flaw = await flawOfCheckpointFile(config, file, { create: false })
  if (flaw !== null) {
    return failed(
      `Checkpoints cannot be appended to ${file}, which ${flaw}.`,
      'Name a file that the service can append to, on another volume than the database (SYMBOLON_AUDIT_CHECKPOINT_FILE), and restart the service.',
    )
  }
  if (existsSync(file)) return ok(`Checkpoints are appended to ${file}.`)
  if (!service.running) return ok(`The next start creates ${file}.`)
  return warning(
    `${file} does not exist, although a service is running: it was moved or removed since the last checkpoint, or the service has another setting.`,
    'Start the service with the same SYMBOLON_AUDIT_CHECKPOINT_FILE; its next checkpoint creates the file.',
  )
}

const DAY_MS = 24 * 60 * 60 * 1000

import { JOB_GRACE_MS } from '../../base/limits.ts'
import { unfinishedRotations } from '../../key-rotation/rotate-data-key.ts'
import type { JobStage } from '../../ports/jobs.ts'
import { ok, warning, type Check, type Finding } from './check.ts'
import type { DoctorContext } from './context.ts'

/** Data keys are rotated once a year. Source: docs/operate/keys.md. */
const KEY_AGE_MS_MAX = 400 * 24 * 60 * 60 * 1000

/** If a rotation takes longer than this beside a running service, it has probably failed. Ours. */
const ROTATION_MS_MAX = 24 * 60 * 60 * 1000

/** A due job starts within a second, unless all slots are busy; after this time it is stuck. Ours. */
const STUCK_MS = 10 * JOB_GRACE_MS

/** Dead letters per tenant that are read to find the oldest. Ours. */
const DEAD_LETTERS_MAX = 1_000

/** Rotations, dead letters and jobs that need the operator. */
export const WORK_CHECKS: readonly Check[] = [
  { name: 'key-rotations', group: 'work', run: checkRotations },
  { name: 'key-age', group: 'work', run: checkKeyAge },
  { name: 'dead-letters', group: 'work', run: checkDeadLetters },
  { name: 'jobs', group: 'work', run: checkJobs },
]

async function checkRotations({ vault, service, machine }: DoctorContext): Promise<Finding> {
  const { tenants } = await vault()
  const unfinished = await unfinishedRotations({ store: { tenants } })
  if (unfinished.length === 0) return ok('No data key rotation is unfinished.')
  const found = `The data key rotation of ${unfinished.length} tenants, such as ${unfinished[0]}, is not finished`
  const keys = (await Promise.all(unfinished.map((it) => tenants.keys(it)))).flat()
  const newest = Math.max(...keys.filter((it) => it.version > 1).map((it) => it.createdAt))
  if (service.running && machine.now() - newest < ROTATION_MS_MAX) {
    return ok(`${found}; the service continues it.`)
  }
  return warning(
    `${found}, and the older keys are kept.`,
    service.running
      ? 'Run symbolon keys rotate; if it fails, the log names the value that cannot be decrypted (key_rotation_failed).'
      : 'Start the service (symbolon serve), which continues it, or run symbolon keys rotate.',
  )
}

async function checkKeyAge({ vault, machine }: DoctorContext): Promise<Finding> {
  const { tenants } = await vault()
  const due: string[] = []
  let oldest = machine.now()
  for (const id of await tenants.ids()) {
    const keys = (await tenants.keys(id)).filter((it) => it.purpose === 'enc')
    const newest = Math.max(...keys.map((it) => it.createdAt))
    oldest = Math.min(oldest, newest)
    if (machine.now() - newest > KEY_AGE_MS_MAX) due.push(id)
  }
  const age = days(machine.now() - oldest)
  if (due.length === 0) return ok(`The oldest data key in use was made ${age} days ago.`)
  return warning(
    `The data keys of ${due.length} tenants are older than ${days(KEY_AGE_MS_MAX)} days, the oldest ${age} days.`,
    due.length === 1 ? `Run symbolon keys rotate --tenant ${due[0]}.` : 'Run symbolon keys rotate.',
  )
}

async function checkDeadLetters({ vault }: DoctorContext): Promise<Finding> {
  const { tenants, jobs } = await vault()
  const { dead } = await jobs.counts()
  if (dead === 0) return ok('No callback is a dead letter.')
  let oldest = Infinity
  for (const id of await tenants.ids()) {
    for (const it of await jobs.deadLetters(id, DEAD_LETTERS_MAX)) {
      oldest = Math.min(oldest, it.createdAt)
    }
  }
  const since = Number.isFinite(oldest) ? `, the oldest from ${new Date(oldest).toISOString()}` : ''
  return warning(
    `${dead} callbacks could not be delivered and are dead letters${since}.`,
    'Find out why with symbolon callbacks list --api-key-file FILE, then run symbolon callbacks replay --all --api-key-file FILE.',
  )
}

async function checkJobs({ vault, service, machine }: DoctorContext): Promise<Finding> {
  const { tenants, jobs } = await vault()
  const counts = await jobs.counts()
  const waiting = `${counts.run} runs and ${counts.deliver} callbacks are waiting`
  const stuckSince = machine.now() - STUCK_MS
  const stages: readonly JobStage[] = ['run', 'deliver']
  const stuck: string[] = []
  for (const id of await tenants.ids()) {
    for (const stage of stages) {
      const found = await jobs.due(id, { stage, now: stuckSince, limit: 1, without: [] })
      if (found.length > 0) stuck.push(id)
    }
  }
  if (stuck.length === 0) return ok(`${waiting}; none is overdue.`)
  return warning(
    `${waiting}, some of them overdue for more than ${STUCK_MS / 60_000} minutes, such as those of tenant ${stuck[0]}.`,
    service.running
      ? 'Read the log for jobs_failed and no_reactors, fix the cause, and restart the service.'
      : 'Start the service: symbolon serve.',
  )
}

function days(ms: number): number {
  return Math.floor(ms / (24 * 60 * 60 * 1000))
}

/** Renders how the checkpoints in the files of `audit verify --against` compare with the database. */
import type {
  CheckpointComparison,
  CheckpointMismatch,
  ComparedCheckpoints,
} from '../audit/checkpoint-comparison.ts'
import type { Flaw } from '../audit/chain-flaws.ts'

/** Whether the comparison leaves nothing to look into. */
export function isMatch({ tenant, mismatch, forged }: CheckpointComparison): boolean {
  return tenant !== 'gone' && tenant !== 'unreadable' && mismatch === null && forged === 0
}

/** Returns the first mismatch as a flaw of the audit log; null if there is none. */
export function flawOfComparison(compared: CheckpointComparison | undefined): Flaw | null {
  const mismatch = compared?.mismatch ?? null
  return mismatch === null ? null : { number: mismatch.number, what: sentenceOf(mismatch) }
}

function sentenceOf({ what, at }: CheckpointMismatch): string {
  const time = timeOf(at)
  switch (what) {
    case 'missing':
      return `of the checkpoint of ${time} is missing: the database is older than a checkpoint it once issued`
    case 'different':
      return `is another one than in the checkpoint of ${time}: the database was put back to an earlier state, or the audit log rewritten`
    default:
      return `is the one in the checkpoint of ${time}, but events that were removed by then are back: the database is older than a checkpoint it once issued`
  }
}

/** The lines for one tenant that is in the database, with its keys; undefined for one without checkpoints in the files. */
export function linesOfComparison(compared: CheckpointComparison | undefined): string[] {
  if (compared === undefined) {
    return ['  compared: nothing, since the files of --against hold no checkpoint of this tenant']
  }
  if (compared.tenant === 'unreadable') {
    return ['  compared: NOTHING, since the keys or the audit log of this tenant cannot be read']
  }
  const { checkpoints, equal, removed, missing, different, restored, forged } = compared
  const lines = [`  compared: ${countOf(checkpoints, 'checkpoint')}${spanOf(compared)}`]
  const counts: [count: number, text: string][] = [
    [equal, 'match'],
    [removed, 'cannot be compared: their events were removed as older than the retention period'],
    [missing, 'have an event that is missing'],
    [different, 'have another event'],
    [restored, 'match, but are of a time when more of the oldest events were removed'],
  ]
  for (const [count, text] of counts) if (count > 0) lines.push(`    ${count} ${text}`)
  if (forged > 0) {
    lines.push(
      `  NOT GENUINE: ${countOf(forged, 'line')}: not made with the keys of this tenant in the database. Either the service did not`,
      '    write them, or the keys were replaced or are from an earlier time',
    )
  }
  return lines
}

/** The line for a tenant whose checkpoints are in the files, but which the database does not have. */
export function lineOfGone(compared: CheckpointComparison): string {
  const checkpoints = `${countOf(compared.checkpoints, 'checkpoint')}${spanOf(compared)}`
  return (
    `tenant ${compared.tenantId}: GONE: the tenant is not in the database, but has ${checkpoints}: the database is older than a ` +
    'checkpoint it once issued, or the tenant was deleted more than an hour ago'
  )
}

/** The rest of the line for a deleted tenant. */
export function deletedNoteOf(compared: CheckpointComparison | undefined): string {
  if (compared === undefined) return ''
  return `; its keys are gone, so that ${countOf(compared.checkpoints, 'checkpoint')} of it cannot be compared`
}

/** The lines about what belongs to no tenant of the report. */
export function notesOfComparison({ unreadable, left }: ComparedCheckpoints): string[] {
  const notes: string[] = []
  if (unreadable > 0) {
    notes.push(
      `Not compared: ${countOf(unreadable, 'line')} of a checkpoint that cannot be read, such as one that a full disk or a power cut ended early.`,
    )
  }
  if (left > 0) {
    notes.push(
      `Not listed: ${countOf(left, 'line')} of further tenants that are not in the database.`,
    )
  }
  return notes
}

/** The member `against` of a line of JSON. */
export function jsonOfComparison(compared: CheckpointComparison | undefined): object | null {
  if (compared === undefined) return null
  const { checkpoints, from, to, equal, removed, missing, different, restored, forged } = compared
  const times = { from: from === null ? null : timeOf(from), to: to === null ? null : timeOf(to) }
  const counts = { equal, removed, missing, different, restored }
  return compared.tenant === 'present'
    ? { checkpoints, ...times, ...counts, not_genuine: forged }
    : { checkpoints, ...times }
}

/** The line of JSON for a tenant that the database does not have. */
export function jsonOfGone(compared: CheckpointComparison): string {
  const { tenantId } = compared
  const broken = { entry: null, what: 'the tenant is not in the database' }
  return JSON.stringify({
    tenant: tenantId,
    intact: false,
    broken,
    against: jsonOfComparison(compared),
  })
}

function spanOf({ from, to }: CheckpointComparison): string {
  if (from === null || to === null) return ''
  return from === to ? `, of ${timeOf(from)}` : `, of ${timeOf(from)} to ${timeOf(to)}`
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function timeOf(at: number): string {
  return new Date(at).toISOString()
}

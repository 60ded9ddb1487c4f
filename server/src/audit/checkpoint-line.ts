/** The form in which a checkpoint leaves the database: the fields of a line of JSON, in the service log or in a file. */
import { isUuid } from '../base/id.ts'
import type { AuditCheckpoint } from '../ports/audit-log.ts'
import type { TenantKeys } from '../ports/keyring.ts'

/** The event in the service log, and the member `event` of a line of the file. */
export const CHECKPOINT_EVENT = 'audit_checkpoint'

/** States that the audit log of a tenant had an event with this number and hash. */
export interface CheckpointLine {
  readonly tenantId: string
  /** Of the last event that the checkpoint covers. */
  readonly number: number
  /** Number of the last event that had been removed by retention. */
  readonly removed: number
  /** In hex, of the chain up to the last event. */
  readonly hash: string
  readonly at: number
  readonly proof: Uint8Array
}

/** The fields of a line, in their order. */
export interface CheckpointFields {
  readonly [name: string]: string | number
}

/**
 * Returns the fields of the line for `checkpoint`. Their proof is made for lines alone: the database does not accept it, so that
 * readers of the log who can write to the database cannot cut an audit log back to a checkpoint from the log. Decision 0083.
 */
export function checkpointFields(
  keys: Pick<TenantKeys, 'attest'>,
  tenantId: string,
  { removed, last, at }: AuditCheckpoint,
): CheckpointFields {
  const hash = Buffer.from(last.hash).toString('hex')
  const line = { tenantId, number: last.number, removed: removed.number, hash, at }
  const proof = Buffer.from(keys.attest(statementOf(line))).toString('hex')
  const { number } = line
  const time = new Date(at).toISOString()
  return { tenant: tenantId, number, removed: removed.number, hash, at: time, proof }
}

/** Whether the tenant's keys made the line. */
export function isGenuineLine(keys: Pick<TenantKeys, 'attests'>, line: CheckpointLine): boolean {
  return keys.attests(statementOf(line), line.proof)
}

function statementOf(line: Omit<CheckpointLine, 'proof'>): string[] {
  const { tenantId, number, removed, hash, at } = line
  return [
    'audit checkpoint outside the database',
    tenantId,
    String(number),
    String(removed),
    hash,
    String(at),
  ]
}

/**
 * Returns the checkpoint in a line of a log or a file, after any prefix that a container runtime put before the JSON, or in the
 * member `log` in which Docker wraps a line. Returns null for any other line, and `unreadable` for one that seems to be of a
 * checkpoint, but was cut off or is garbled.
 */
export function parseCheckpointLine(text: string): CheckpointLine | 'unreadable' | null {
  if (!text.includes(CHECKPOINT_EVENT)) return null
  const [from, to] = [text.indexOf('{'), text.lastIndexOf('}')]
  if (from < 0) return null
  const fields = objectOf(text.slice(from, to + 1))
  if (fields === null) return CHECKPOINT_MARK.test(text) ? 'unreadable' : null
  if (fields['event'] === CHECKPOINT_EVENT) return checkpointOf(fields) ?? 'unreadable'
  const { log } = fields
  return typeof log === 'string' && from === 0 ? parseCheckpointLine(log) : null
}

/** In a line that cannot be parsed: the event, and not a mention of it. */
const CHECKPOINT_MARK = new RegExp(String.raw`\\?"event\\?":\\?"${CHECKPOINT_EVENT}`)

function objectOf(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

function checkpointOf(fields: Readonly<Record<string, unknown>>): CheckpointLine | null {
  const { tenant, number, removed, hash, at, proof } = fields
  if (typeof tenant !== 'string' || !isUuid(tenant)) return null
  if (!isCount(number) || !isCount(removed)) return null
  if (!isHex(hash, 64) || !isHex(proof, 2)) return null
  const time = typeof at === 'string' ? Date.parse(at) : NaN
  if (Number.isNaN(time)) return null
  return {
    tenantId: tenant,
    number,
    removed,
    hash,
    at: time,
    proof: Uint8Array.from(Buffer.from(proof, 'hex')),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isHex(value: unknown, charsMin: number): value is string {
  return typeof value === 'string' && value.length >= charsMin && /^(?:[0-9a-f]{2})+$/.test(value)
}

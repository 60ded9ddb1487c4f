/**
 * The access rows of a tenant: its applications, their keys and sessions, as statements that the tenant's keys attest.
 *
 * One access state per tenant seals all rows of applications and keys; each session has a proof of its own. Stores refuse a commit
 * that changes applications or keys and leaves the state out. Decision 0082.
 */
import type { AuditEvent } from './audit-log.ts'
import type { Change } from './change.ts'
import { descriptionOf, ENTITY_NAMES } from './store/entities.ts'
import type { StoredApplication, StoredApplicationKey, StoredSession } from './stored.ts'

/** A digest over all applications and keys of a tenant, after so many changes of them. */
export interface SealedAccess {
  /** The number of changes, each of which has an audit event: from one checkpoint to the next it grows by those. */
  readonly revision: number
  /** Of AccessSum.state(), 32 bytes. */
  readonly digest: Uint8Array
}

export interface AccessState extends SealedAccess {
  /** TenantKeys.attest() over all of it. */
  readonly proof: Uint8Array
}

export const ACCESS_TABLES = ['applications', 'application_keys', 'sessions'] as const
export type AccessTable = (typeof ACCESS_TABLES)[number]

/** A row of an access table, for checking. */
export interface AccessRow {
  readonly id: string
  /** The statement that its tenant's keys attest; null if the row cannot be read, which no write of the service leads to. */
  readonly statement: readonly string[] | null
  /** Of a session. */
  readonly proof: Uint8Array | null
}

/** Returns the statement that an access state proves. */
export function accessStateStatement(
  tenantId: string,
  { revision, digest }: SealedAccess,
): string[] {
  return ['access', tenantId, String(revision), Buffer.from(digest).toString('hex')]
}

export function applicationStatement(tenantId: string, application: StoredApplication): string[] {
  const { id, name, type, permissions, rules, destinations, allowedOrigins, expiresAt } =
    application
  const { createdBy, createdAt, modifiedBy, modifiedAt } = application
  const row: StoredApplication = {
    id,
    name,
    type,
    permissions,
    rules,
    destinations,
    allowedOrigins,
    expiresAt,
    createdBy,
    createdAt,
    modifiedBy,
    modifiedAt,
  }
  return ['application', tenantId, canonical(row)]
}

export function applicationKeyStatement(tenantId: string, key: StoredApplicationKey): string[] {
  const { id, applicationId, hash, prefix, version, createdBy, createdAt } = key
  const row: StoredApplicationKey = {
    id,
    applicationId,
    hash,
    prefix,
    version,
    createdBy,
    createdAt,
  }
  return ['application key', tenantId, canonical(row)]
}

/** Returns the statement that a session's proof proves. */
export function sessionStatement(
  tenantId: string,
  session: Omit<StoredSession, 'proof'>,
): string[] {
  const { id, applicationId, keyId, hash, nonceHash, createdAt, expiresAt, authorization } = session
  const row: Omit<StoredSession, 'proof'> = {
    id,
    applicationId,
    keyId,
    hash,
    nonceHash,
    createdAt,
    expiresAt,
    authorization,
  }
  return ['session', tenantId, canonical(row)]
}

/** Whether the change is of an application or a key, which the access state seals. */
export function changesAccess(change: Change): boolean {
  return 'entity' in change && descriptionOf(change.entity).inAccessState === true
}

/** The number of events that tell of such a change. */
export function accessChangesIn(
  events: readonly Pick<AuditEvent, 'entityType' | 'changed'>[],
): number {
  return events.filter((it) => it.changed && ACCESS_ENTITIES.has(it.entityType)).length
}

const ACCESS_ENTITIES: ReadonlySet<string> = new Set(
  ENTITY_NAMES.filter((it) => descriptionOf(it).inAccessState),
)

/** Returns an error if `changes` change applications or keys and say nothing of the access state; null otherwise. */
export function missingAccessState(changes: readonly Change[]): Error | null {
  if (!changes.some(changesAccess) || changes.some(isOfState)) return null
  return new TypeError(
    'Cannot commit, and nothing was changed: applications or keys change without their access state',
  )
}

function isOfState({ kind }: Change): boolean {
  return kind === 'put-access-state' || kind === 'leave-access-state'
}

/** Encodes digest and proof as text, for stores to keep beside the revision. */
export function packAccess({ digest, proof }: AccessState): string {
  const packed: PackedAccess = {
    digest: Buffer.from(digest).toString('hex'),
    proof: Buffer.from(proof).toString('base64'),
  }
  return JSON.stringify(packed)
}

interface PackedAccess {
  readonly digest: string
  readonly proof: string
}

/**
 * Returns the access state that is stored as `text`, beside its revision; null if there is none. For a text that packAccess() did
 * not make, returns one that proves nothing.
 */
export function unpackAccess(text: unknown, revision: unknown): AccessState | null {
  const number = Number(revision ?? 0)
  if (typeof text !== 'string' && number === 0) return null
  try {
    const { digest, proof } = JSON.parse(String(text)) as PackedAccess
    return {
      revision: number,
      digest: Uint8Array.from(Buffer.from(digest, 'hex')),
      proof: Uint8Array.from(Buffer.from(proof, 'base64')),
    }
  } catch {
    return { revision: number, digest: new Uint8Array(), proof: new Uint8Array() }
  }
}

/**
 * Renders the columns of a row, the same in every store: members sorted by name, without those that are null, so that a nullable column can be
 * added later; bytes in hex. Stored JSON may have its members in any order.
 */
function canonical(value: unknown): string {
  if (value instanceof Uint8Array) return `x${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'string' ? JSON.stringify(value) : String(value)
  }
  const members = Object.entries(value)
    .filter(([, it]) => it !== null && it !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, it]) => `${JSON.stringify(name)}:${canonical(it)}`)
  return `{${members.join()}}`
}

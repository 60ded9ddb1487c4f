/**
 * Derives audit events from decisions that were made and changes about to be committed.
 *
 * No use case writes events itself. The kind of a change defines its event, and so does the permission of a decision, so a new
 * use case is recorded without code of its own. Decision 0020.
 */
import type { Decision } from '../base/access.ts'
import type { RequestContext } from './context.ts'
import { AUDIT_EVENT_ENTITIES_MAX } from '../base/limits.ts'
import type { AuditEvent } from '../ports/audit-log.ts'
import { idOf, ruleOf, type EntityChange } from '../ports/store/entity-change.ts'
import type { Change } from '../ports/change.ts'
import type { StoredToken, TransactionState } from '../ports/stored.ts'

/** The initiator: the part of the request context that the audit log names. */
export type Actor = Pick<RequestContext, 'applicationId' | 'keyId' | 'traceId'>

/**
 * Returns the events for `changes`, and for those `decisions` that are not about them.
 *
 * A grant that is about no single resource, in a request that changes something, is the one that allowed the change: one event
 * for both. Decisions that differ only in their resource share an event, unless they send to different destinations.
 *
 * If changes are made later, as in a transaction, call this twice: the decisions are recorded at once, and the events of the
 * changes are parked until they are made.
 */
export function auditEventsOf(
  actor: Actor,
  at: number,
  decisions: readonly Decision[],
  changes: readonly Change[],
): AuditEvent[] {
  const changed: PartOfChange[] = []
  for (const change of changes) {
    const made = partOfChange(change)
    if (made !== null) changed.push(made)
  }
  const events: AuditEvent[] = []
  if (changed.length > 0) {
    const allowing = decisions.find((it) => it.allowed && it.internalId === undefined)
    const permission = allowing?.permission ?? ''
    for (const { entityType, operation, ids } of changed) {
      append(events, actor, at, {
        entityType,
        operation,
        allowed: true,
        changed: true,
        permission,
        shown: null,
        replayed: false,
        dryRun: false,
        destination: null,
        ids,
      })
    }
  }
  for (const it of partsOfDecisions(decisions, changed)) append(events, actor, at, it)
  return events
}

function append(events: AuditEvent[], actor: Actor, at: number, part: EventPart): void {
  const { applicationId, keyId, traceId } = actor
  const { entityType, operation, allowed, changed, permission, shown } = part
  const { replayed, dryRun, destination, ids } = part
  for (let from = 0; from === 0 || from < ids.length; from += AUDIT_EVENT_ENTITIES_MAX) {
    // Written out, as above: every request runs this, and a spread would take as long as all the rest.
    events.push({
      at,
      applicationId,
      keyId,
      traceId,
      entityType,
      operation,
      allowed,
      changed,
      permission,
      shown,
      replayed,
      dryRun,
      destination,
      entityIds:
        ids.length <= AUDIT_EVENT_ENTITIES_MAX
          ? ids
          : ids.slice(from, from + AUDIT_EVENT_ENTITIES_MAX),
    })
  }
}

/** The part in which events of one request differ. */
type EventPart = Omit<AuditEvent, 'at' | keyof Actor | 'entityIds'> & { readonly ids: string[] }

interface PartOfChange {
  readonly entityType: string
  readonly operation: string
  readonly ids: string[]
}

/** Complete, so that a new kind of change has to define its event. */
function partOfChange(change: Change): PartOfChange | null {
  switch (change.kind) {
    case 'insert-tenant':
      return part('tenant', 'create', change.tenant.id)
    case 'insert-tokens':
      return { entityType: 'token', operation: 'create', ids: internalIdsOf(change.tokens) }

    case 'update-token':
      return part('token', 'update', change.token.internalId)
    case 'delete-token':
      return part('token', 'delete', change.token.internalId)
    case 'open-transaction':
      return part('transaction', 'create', change.transaction.id)
    case 'end-transaction':
      return part('transaction', operationOfEnd(change.as), change.id)

    case 'delete-tenant':
      return part('tenant', 'delete')
    case 'authorize-session':
      return part('session', 'authorize', change.id)

    case 'insert':
    case 'update':
    case 'delete':
      return partOfRow(change)

    // Of no concern to the tenant, the audit log's own, or the operator's, which are logged.
    case 'clear-tenant':
    case 'require-root-key':
    case 'renew-envelopes':
    case 'retire-data-keys':
    case 'destroy-tenant-keys':
    case 'replace-root-key':
    case 'put-notice':
    case 'enlist':
    case 'install':
    case 'remember-answer':
    case 'append-audit-events':
    case 'park-audit-events':
    case 'end-parked-audit-events':
    case 'trim-audit-log':
    case 'put-audit-checkpoint':
    case 'put-access-state':
    case 'leave-access-state':
    case 'prove-session':
    case 'claim-job':
      return null

    default:
      throw new TypeError('Cannot record: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

/** Returns null for entities whose changes have no events; their descriptions say so. */
function partOfRow(change: EntityChange): PartOfChange | null {
  const { event } = ruleOf(change)
  const id = idOf(change)
  return event === null
    ? null
    : { entityType: change.entity, operation: event, ids: id === null ? [] : [id] }
}

function operationOfEnd(as: TransactionState): string {
  if (as === 'committed') return 'commit'
  return as === 'expired' ? 'expire' : 'rollback'
}

function internalIdsOf(tokens: readonly StoredToken[]): string[] {
  return tokens.length === 1 ? [tokens[0]!.internalId] : tokens.map((it) => it.internalId)
}

function part(entityType: string, operation: string, ...ids: string[]): PartOfChange {
  return { entityType, operation, ids }
}

function partsOfDecisions(
  decisions: readonly Decision[],
  changed: readonly PartOfChange[],
): Iterable<EventPart> {
  // The usual case: a request makes one change, and one decision allowed it.
  if (decisions.every((it) => isAboutChange(it, changed))) return []
  const parts: DecidedPart[] = []
  for (const decision of decisions) {
    if (isAboutChange(decision, changed)) continue
    const { internalId } = decision
    const { entityType, operation } = whatIsAsked(decision)
    // Searched from the end: there are few different parts, and similar decisions mostly follow each other.
    let found = parts.findLast(
      (it) =>
        it.entityType === entityType && it.operation === operation && isAlike(it.of, decision),
    )
    if (found === undefined) {
      const { permission, allowed, transform = null, replayed = false } = decision
      const { dryRun = false, destination = null } = decision
      found = {
        entityType,
        operation,
        allowed,
        changed: false,
        permission,
        shown: transform,
        replayed,
        dryRun,
        destination,
        ids: [],
        of: decision,
        seen: null,
      }
      parts.push(found)
    }
    if (internalId !== undefined) addId(found, internalId)
  }
  return parts
}

interface DecidedPart extends EventPart {
  /** The first of the decisions that share the part. */
  readonly of: Decision
  /** The ids, from the second on: most parts have one. */
  seen: Set<string> | null
}

/** Whether two decisions about the same kind of resource share an event. */
function isAlike(a: Decision, b: Decision): boolean {
  return (
    a.permission === b.permission &&
    a.allowed === b.allowed &&
    a.transform === b.transform &&
    a.replayed === b.replayed &&
    a.dryRun === b.dryRun &&
    a.destination === b.destination &&
    (a.internalId === undefined) === (b.internalId === undefined)
  )
}

function addId(part: DecidedPart, id: string): void {
  const { ids } = part
  if (ids.length > 0) {
    part.seen ??= new Set(ids)
    if (part.seen.has(id)) return
    part.seen.add(id)
  }
  ids.push(id)
}

/**
 * Whether the decision allowed one of the changes, whose event then says more. A decision to send something to a destination
 * never does.
 */
function isAboutChange(decision: Decision, changed: readonly PartOfChange[]): boolean {
  const { allowed, internalId, destination } = decision
  if (!allowed || changed.length === 0 || destination !== undefined) return false
  if (internalId === undefined) return true
  const { entityType, operation } = whatIsAsked(decision)
  return changed.some(
    (it) =>
      it.operation === operation && it.entityType === entityType && it.ids.includes(internalId),
  )
}

/**
 * Returns the entity type and operation of a decision: `tenant:member:read` is to read a `tenant_member`. A resource in
 * containers that `proxy:invoke` was checked for is not a proxy but a token used by one. Some decisions name their entity
 * themselves.
 */
function whatIsAsked({ permission, internalId, containers, about }: Decision): {
  readonly entityType: string
  readonly operation: string
} {
  if (about !== undefined) return about
  const words = permission.split(':')
  const operation = words.pop()!
  if (operation === 'invoke' && internalId !== undefined && containers.length > 0)
    return USE_OF_TOKEN
  return { entityType: words.join('_'), operation }
}

const USE_OF_TOKEN = { entityType: 'token', operation: 'use' } as const

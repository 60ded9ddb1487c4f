import { NIL_ID, isUuid } from '../../../base/id.ts'
import { PARKED_MAX } from '../../../base/limits.ts'
import { packAccess } from '../../../ports/access-state.ts'
import { packCheckpoint } from '../../../ports/packed-checkpoint.ts'
import { writeAuditEvent, itemCountOf } from '../../../ports/audit-log.ts'
import type { Change } from '../../../ports/change.ts'
import type { EntityChange } from '../../../ports/store/entities.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import type { BatchPacker, SqliteValue } from './batch.ts'
import { CLEARED } from './clearing-statements.ts'
import { entitySteps } from './entity-changes.ts'
import { packKeyChange } from './key-changes.ts'
import { STATEMENT } from './statements.ts'
import { packContent } from './token-content.ts'
import { packDeletion, packEnd, packOpening, packUpdate } from './token-changes.ts'
import { indexTermsOf } from '../../../ports/index-terms.ts'

/** The context that packing a token depends on. */
export interface TokenContext {
  readonly tenantId: string
  /** The staging batch that hides it; null if the commit is applied at once. */
  readonly stagingBatch: number | null
  /** Whether any token of any tenant has a uuid as its name that is not its internal id. */
  readonly uuidNames: boolean
  /** Whether a transaction was ever opened. */
  readonly transactions: boolean
  /** The transaction it is made in: single tokens go to its own staging batch. */
  readonly within: string | null
}

/** Returns the transaction that the commit belongs to. */
export function enlistedIn(changes: readonly Change[]): string | null {
  for (const it of changes) if (it.kind === 'enlist') return it.transactionId
  return null
}

/**
 * Packs every change except inserted tokens, which the caller packs.
 *
 * `within` is the transaction that the whole commit belongs to.
 */
export function packChange(
  packer: BatchPacker,
  tenantId: string,
  change: Change,
  within: string | null,
): void {
  switch (change.kind) {
    case 'install':
      packer.step(STATEMENT.install, [1, change.rootKey.id, change.rootKey.check])
      return

    case 'insert-tenant': {
      const { tenant, keys } = change
      packer.step(STATEMENT.refuseTenantName, [tenant.name])
      packer.step(STATEMENT.insertTenant, [
        tenant.id,
        tenant.name,
        tenant.plan,
        JSON.stringify(tenant.settings),
        tenant.createdBy,
        tenant.createdAt,
        tenant.modifiedBy,
        tenant.modifiedAt,
      ])
      for (const row of keys) {
        packEntityChange(packer, tenant.id, { kind: 'insert', entity: 'tenant_key', row })
      }
      packer.step(STATEMENT.beginAuditLog, [tenant.id])
      return
    }

    case 'put-access-state': {
      const { before, state } = change
      const values = [tenantId, before, state.revision, packAccess(state)]
      packer.step(STATEMENT.putAccessState, values)
      return
    }

    case 'leave-access-state':
      return

    case 'insert':
    case 'update':
    case 'delete':
      packEntityChange(packer, tenantId, change)
      return

    case 'claim-job': {
      const { id, revision, dueAt } = change
      packer.step(STATEMENT.claimJob, [tenantId, id, revision, dueAt])
      return
    }

    case 'remember-answer': {
      const { id, status, body, expiresAt } = change.answer
      packer.step(STATEMENT.rememberAnswer, [tenantId, id, status, body, expiresAt, change.now])
      packer.step(STATEMENT.forgetAnswers, [change.now])
      return
    }

    // Packed by the caller, after all other changes.
    case 'insert-tokens':
      return

    case 'enlist':
      packer.step(STATEMENT.requireOpen, [tenantId, change.transactionId, change.now])
      for (const { applicationId, keyId } of change.keys) {
        const values = [tenantId, change.transactionId, applicationId, keyId ?? NIL_ID]
        packer.step(STATEMENT.noteKey, values)
      }
      return

    case 'update-token':
      packUpdate(packer, { tenantId, within }, change)
      return

    case 'delete-token':
      packDeletion(packer, { tenantId, within }, change)
      return

    case 'open-transaction':
      packOpening(packer, tenantId, change)
      return

    case 'end-transaction':
      packEnd(packer, tenantId, change)
      return
    case 'append-audit-events':
      for (const event of change.events) {
        packer.step(STATEMENT.appendAuditEvent, [
          tenantId,
          itemCountOf(event),
          writeAuditEvent(event),
        ])
      }
      return

    case 'park-audit-events': {
      const { transactionId, events } = change
      for (const event of events) {
        const values = [tenantId, transactionId, itemCountOf(event), writeAuditEvent(event)]
        packer.step(STATEMENT.parkAuditEvent, values)
      }
      packer.step(STATEMENT.refuseParkedFull, [tenantId, transactionId, PARKED_MAX])
      return
    }

    case 'end-parked-audit-events': {
      const values = [tenantId, change.transactionId]
      if (change.append) packer.step(STATEMENT.takeParkedAuditEvents, values)
      packer.step(STATEMENT.dropParkedAuditEvents, values)
      return
    }

    case 'trim-audit-log': {
      const { number, listed, hash } = change.removed
      packer.step(STATEMENT.trimAuditLog, [tenantId, number])
      packer.step(STATEMENT.moveAuditLogStart, [tenantId, number, listed, hash])
      return
    }

    case 'put-audit-checkpoint': {
      const { checkpoint } = change
      const { last, removed } = checkpoint
      packer.step(STATEMENT.putAuditCheckpoint, [
        tenantId,
        last.number,
        packCheckpoint(checkpoint),
        removed.number,
      ])
      return
    }

    case 'delete-tenant':
      packer.step(STATEMENT.deleteTenantKeys, [tenantId])
      packer.step(STATEMENT.deleteTenant, [tenantId])
      packer.step(STATEMENT.noteDeletedTenant, [tenantId, change.at])
      return

    case 'clear-tenant':
      for (const { table } of CLEARED) packer.step(STATEMENT[`clear:${table}`], [tenantId])
      packer.step(STATEMENT.forgetDeletedTenant, [tenantId, change.deletedBefore])
      return

    case 'require-root-key':
    case 'renew-envelopes':
    case 'retire-data-keys':
    case 'destroy-tenant-keys':
    case 'replace-root-key':
      packKeyChange(packer, tenantId, change)
      return

    case 'put-notice': {
      const { id, notice } = change
      if (notice === null) packer.step(STATEMENT.removeNotice, [id])
      else packer.step(STATEMENT.putNotice, [id, notice.text, notice.at])
      return
    }

    case 'authorize-session': {
      const { permissions, rules, applicationId, keyId } = change.authorization
      packer.step(STATEMENT.authorizeSession, [
        tenantId,
        change.id,
        JSON.stringify(permissions),
        JSON.stringify(rules),
        applicationId,
        keyId,
        change.expiresAt,
        change.now,
        change.proof,
      ])
      return
    }

    case 'prove-session':
      packer.step(STATEMENT.proveSession, [tenantId, change.id, change.before, change.proof])
      return

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

/** Packs one token, after the checks that must precede it. */
export function packToken(packer: BatchPacker, context: TokenContext, token: StoredToken): void {
  const { tenantId, within } = context
  const { id, internalId, type, fingerprint, createdAt } = token
  if (token.deduplicate && fingerprint !== null) {
    const duplicate = [tenantId, type, fingerprint, createdAt]
    if (within === null) packer.step(STATEMENT.refuseDuplicate, duplicate)
    else packer.step(STATEMENT.refuseDuplicateWithin, [...duplicate, internalId, within])
  }
  if (context.uuidNames) packer.step(STATEMENT.refuseUuidName, [tenantId, internalId])
  if (isNamedByUuid(token)) packer.step(STATEMENT.refuseInternalId, [tenantId, id])
  if (context.transactions && id !== internalId) {
    packer.step(STATEMENT.expireHolderOfName, [tenantId, id, createdAt])
    packer.step(STATEMENT.freeName, [tenantId, id])
  }
  const single = within !== null && context.stagingBatch === null
  let at = 0
  row[at++] = tenantId
  row[at++] = internalId
  if (id !== internalId || single) row[at++] = id === internalId ? null : id
  row[at++] = type
  at = packContent(row, at, token)
  row[at++] = token.createdBy
  row[at++] = createdAt
  row[at++] = token.modifiedBy
  row[at++] = token.modifiedAt
  row[at++] = single ? within : context.stagingBatch
  packer.step(
    single
      ? STATEMENT.insertEnlistedToken
      : id === internalId
        ? STATEMENT.insertToken
        : STATEMENT.insertNamedToken,
    row,
  )
  for (const hash of indexTermsOf(token)) {
    packer.step(STATEMENT.insertTokenIndex, [tenantId, hash, internalId])
  }
}

/** Reused for every token: in bulk, allocating an array for each would be half the cost of packing. */
const row: SqliteValue[] = []

/** Packs the removal of a staged token, which was never visible. */
export function packRemoval(packer: BatchPacker, tenantId: string, token: StoredToken): void {
  packer.step(STATEMENT.deleteToken, [tenantId, token.internalId])
  for (const hash of indexTermsOf(token)) {
    packer.step(STATEMENT.deleteTokenIndex, [tenantId, hash, token.internalId])
  }
}

export function isNamedByUuid({ id, internalId }: StoredToken): boolean {
  return id !== internalId && isUuid(id)
}

function packEntityChange(packer: BatchPacker, tenantId: string, change: EntityChange): void {
  for (const [name, values] of entitySteps(tenantId, change)) packer.step(STATEMENT[name], values)
}

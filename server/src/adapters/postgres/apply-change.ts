/** Makes one change of a commit, in the transaction of its batch, while its tenant is locked. */
import type { Change } from '../../world/change.ts'
import { clearTenant } from './clearing.ts'
import { insertDefinition, updateDefinition } from './definition-changes.ts'
import {
  deleteApplication,
  insertApplication,
  insertApplicationKey,
  updateApplication,
} from './application-changes.ts'
import { changeJob } from './job-changes.ts'
import { changeKeys } from './key-changes.ts'
import {
  appendParked,
  dropParked,
  parkAuditEvents,
  putAuditCheckpoint,
  trimAuditLog,
} from './audit-log-changes.ts'
import { pendingOf } from './audit-writer.ts'
import { authorizeSession, insertSession } from './session-changes.ts'
import { deleteTenant, insertTenant, install, updateTenant } from './tenant-changes.ts'
import { packText } from './text.ts'
import { deleteToken, updateToken } from './token-changes.ts'
import { insertInOrder } from './token-inserts.ts'
import { endTransaction, openTransaction, requireOpen } from './transaction-changes.ts'
import type { Step, Unit } from './unit.ts'

const ABSENT = { kind: 'absent' } as const

export async function applyChange(unit: Unit, change: Change): Step {
  const { session, tenantId } = unit
  switch (change.kind) {
    case 'install':
      return await install(unit, change.rootKey)
    case 'insert-tenant':
      return await insertTenant(unit, change)
    case 'update-tenant':
      return await updateTenant(unit, change.tenant)
    case 'delete-tenant':
      return await deleteTenant(unit, change.at)
    case 'clear-tenant':
      return await clearTenant(unit, change)

    case 'insert-application':
      return await insertApplication(unit, change.application)
    case 'update-application':
      return await updateApplication(unit, change.application)
    case 'delete-application':
      return await deleteApplication(unit, change.id)
    case 'insert-application-key':
      return await insertApplicationKey(unit, change.key)
    case 'delete-application-key': {
      const deleted = await session.run(
        'DELETE FROM application_keys WHERE tenant = $1 AND application = $2 AND id = $3',
        [tenantId, change.applicationId, change.id],
      )
      return deleted === 0 ? ABSENT : null
    }

    case 'insert-session':
      return await insertSession(unit, change.session)
    case 'authorize-session':
      return await authorizeSession(unit, change)

    case 'insert-proxy':
      return await insertDefinition(unit, 'proxies', change.proxy, change.proxy.hash)
    case 'update-proxy':
      return (await updateDefinition(unit, 'proxies', change.proxy))
        ? null
        : { kind: 'proxy-changed' }
    case 'insert-reactor':
      return await insertDefinition(unit, 'reactors', change.reactor)
    case 'update-reactor':
      return (await updateDefinition(unit, 'reactors', change.reactor))
        ? null
        : { kind: 'reactor-changed' }
    case 'delete-proxy':
    case 'delete-reactor': {
      const table = change.kind === 'delete-proxy' ? 'proxies' : 'reactors'
      const deleted = await session.run(`DELETE FROM ${table} WHERE tenant = $1 AND id = $2`, [
        tenantId,
        change.id,
      ])
      return deleted === 0 ? ABSENT : null
    }

    case 'insert-tokens':
      return await insertInOrder(unit, change.tokens)
    case 'update-token':
      return await updateToken(unit, change)
    case 'delete-token':
      return await deleteToken(unit, change)

    case 'open-transaction':
      return await openTransaction(unit, change.transaction)
    case 'enlist':
      return await requireOpen(unit, change)
    case 'end-transaction':
      return await endTransaction(unit, change)

    case 'insert-job':
    case 'claim-job':
    case 'update-job':
    case 'delete-job':
    case 'put-callback-secrets':
      return await changeJob(unit, change)

    case 'require-root-key':
    case 'insert-tenant-key':
    case 'renew-envelopes':
    case 'retire-data-keys':
    case 'destroy-tenant-keys':
    case 'replace-root-key':
      return await changeKeys(unit, change)

    case 'remember-answer': {
      const { id, status, body, expiresAt } = change.answer
      const remembered = await session.run(
        `INSERT INTO answers (tenant, id, status, body, expires_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant, id) DO UPDATE
         SET status = excluded.status, body = excluded.body, expires_at = excluded.expires_at
         WHERE answers.expires_at <= $6`,
        [tenantId, packText(id), status, body, expiresAt, change.now],
      )
      return remembered === 0 ? { kind: 'answer-taken' } : null
    }

    case 'append-audit-events':
      unit.events.push(...change.events.map(pendingOf))
      return null
    case 'park-audit-events':
      return await parkAuditEvents(unit, change)
    case 'append-parked-audit-events':
      return await appendParked(unit, change.transactionId)
    case 'drop-parked-audit-events':
      return await dropParked(unit, change.transactionId)
    case 'trim-audit-log':
      return await trimAuditLog(unit, change.removed)
    case 'put-audit-checkpoint':
      return await putAuditCheckpoint(unit, change.checkpoint)

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

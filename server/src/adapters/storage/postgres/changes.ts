/** Applies one change of a commit, in its batch's transaction, while its tenant is locked. */
import type { Change } from '../../../ports/change.ts'
import { rememberAnswer } from './answer-changes.ts'
import { clearTenant } from './clearing.ts'
import { changeEntity } from './entity-changes.ts'
import { putAccessState } from './access-state-changes.ts'
import { claimJob } from './job-changes.ts'
import { changeKeys } from './key-changes.ts'
import {
  endParked,
  parkAuditEvents,
  putAuditCheckpoint,
  trimAuditLog,
} from './audit-log-changes.ts'
import { pendingOf } from './audit-writer.ts'
import { authorizeSession, proveSession } from './session-changes.ts'
import { deleteTenant, holdRootKey, insertTenant, install, putNotice } from './tenant-changes.ts'
import { deleteToken, updateToken } from './token-changes.ts'
import { insertInOrder } from './token-inserts.ts'
import { endTransaction, enlist, openTransaction } from './transaction-changes.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export async function applyChange(unitOfWork: UnitOfWork, change: Change): ChangeStep {
  switch (change.kind) {
    case 'install':
      return await install(unitOfWork, change.rootKey)
    case 'insert-tenant':
      return await insertTenant(unitOfWork, change)
    case 'delete-tenant':
      return await deleteTenant(unitOfWork, change.at)
    case 'clear-tenant':
      return await clearTenant(unitOfWork, change)

    case 'put-notice':
      return await putNotice(unitOfWork, change)

    case 'put-access-state':
      return await putAccessState(unitOfWork, change)
    case 'leave-access-state':
      return null

    case 'authorize-session':
      return await authorizeSession(unitOfWork, change)
    case 'prove-session':
      return await proveSession(unitOfWork, change)

    case 'insert':
    case 'update':
    case 'delete':
      if (change.entity === 'tenant_key') await holdRootKey(unitOfWork.session)
      return await changeEntity(unitOfWork, change)

    case 'insert-tokens':
      return await insertInOrder(unitOfWork, change.tokens)
    case 'update-token':
      return await updateToken(unitOfWork, change)
    case 'delete-token':
      return await deleteToken(unitOfWork, change)

    case 'open-transaction':
      return await openTransaction(unitOfWork, change)
    case 'enlist':
      return await enlist(unitOfWork, change)
    case 'end-transaction':
      return await endTransaction(unitOfWork, change)

    case 'claim-job':
      return await claimJob(unitOfWork, change)

    case 'require-root-key':
    case 'renew-envelopes':
    case 'retire-data-keys':
    case 'destroy-tenant-keys':
    case 'replace-root-key':
      return await changeKeys(unitOfWork, change)

    case 'remember-answer':
      return await rememberAnswer(unitOfWork, change)

    case 'append-audit-events':
      unitOfWork.events.push(...change.events.map(pendingOf))
      return null
    case 'park-audit-events':
      return await parkAuditEvents(unitOfWork, change)
    case 'end-parked-audit-events':
      return await endParked(unitOfWork, change)
    case 'trim-audit-log':
      return await trimAuditLog(unitOfWork, change.removed)
    case 'put-audit-checkpoint':
      return await putAuditCheckpoint(unitOfWork, change.checkpoint)

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

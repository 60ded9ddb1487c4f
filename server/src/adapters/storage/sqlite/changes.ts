import type { Change } from '../../../ports/change.ts'
import { packAccessState } from './access-state-changes.ts'
import { packAnswer } from './answer-changes.ts'
import {
  packAuditCheckpoint,
  packEndOfParked,
  packEvents,
  packParkedEvents,
  packTrimming,
} from './audit-log-changes.ts'
import { packClearing } from './clearing.ts'
import { packEntityChange } from './entity-changes.ts'
import { packClaim } from './job-changes.ts'
import { packKeyChange } from './key-changes.ts'
import { packAuthorization, packProof } from './session-changes.ts'
import { packInstallation, packNotice, packTenant, packTenantDeletion } from './tenant-changes.ts'
import { packDeletion, packUpdate } from './token-changes.ts'
import { packEnd, packEnlisting, packOpening } from './transaction-changes.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

/** Returns the transaction that the commit belongs to. */
export function enlistedIn(changes: readonly Change[]): string | null {
  for (const it of changes) if (it.kind === 'enlist') return it.transactionId
  return null
}

/** Packs every change except inserted tokens, which the caller packs. */
export function packChange(unitOfWork: SqliteUnitOfWork, change: Change): void {
  switch (change.kind) {
    case 'install':
      return packInstallation(unitOfWork, change.rootKey)
    case 'insert-tenant':
      return packTenant(unitOfWork, change)
    case 'delete-tenant':
      return packTenantDeletion(unitOfWork, change.at)
    case 'clear-tenant':
      return packClearing(unitOfWork, change)

    case 'put-notice':
      return packNotice(unitOfWork, change)

    case 'put-access-state':
      return packAccessState(unitOfWork, change)
    case 'leave-access-state':
      return

    case 'authorize-session':
      return packAuthorization(unitOfWork, change)
    case 'prove-session':
      return packProof(unitOfWork, change)

    case 'insert':
    case 'update':
    case 'delete':
      return packEntityChange(unitOfWork, change)

    // Packed by the caller, after all other changes.
    case 'insert-tokens':
      return
    case 'update-token':
      return packUpdate(unitOfWork, change)
    case 'delete-token':
      return packDeletion(unitOfWork, change)

    case 'open-transaction':
      return packOpening(unitOfWork, change)
    case 'enlist':
      return packEnlisting(unitOfWork, change)
    case 'end-transaction':
      return packEnd(unitOfWork, change)

    case 'claim-job':
      return packClaim(unitOfWork, change)

    case 'require-root-key':
    case 'renew-envelopes':
    case 'retire-data-keys':
    case 'destroy-tenant-keys':
    case 'replace-root-key':
      return packKeyChange(unitOfWork, change)

    case 'remember-answer':
      return packAnswer(unitOfWork, change)

    case 'append-audit-events':
      return packEvents(unitOfWork, change.events)
    case 'park-audit-events':
      return packParkedEvents(unitOfWork, change)
    case 'end-parked-audit-events':
      return packEndOfParked(unitOfWork, change)
    case 'trim-audit-log':
      return packTrimming(unitOfWork, change.removed)
    case 'put-audit-checkpoint':
      return packAuditCheckpoint(unitOfWork, change.checkpoint)

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

import type { Conflict } from '../../ports/change.ts'
import type { StoredToken } from '../../ports/stored.ts'
import type { Refused } from './run-batch.ts'
import { STATEMENT } from './statements.ts'

/**
 * Returns the conflict that a refused step stands for. `tokens` are the tokens that the commit
 * inserts, in order, or the one it updates.
 */
export function conflictOf(
  { statement, tokens: before }: Refused,
  tokens: readonly StoredToken[],
): Conflict {
  const token = tokens[before]
  switch (statement) {
    case STATEMENT.install:
      return { kind: 'installed' }
    case STATEMENT.requireRootKey:
    case STATEMENT.insertNextTenantKey:
    case STATEMENT.replaceRootKey:
    case STATEMENT.rewrapTenantKey:
    case STATEMENT.refuseOtherKeys:
      return { kind: 'keys-changed' }
    case STATEMENT.insertTenant:
    case STATEMENT.refuseTenantName:
      return { kind: 'tenant-taken' }
    case STATEMENT.rememberAnswer:
      return { kind: 'answer-taken' }
    case STATEMENT.updateApplication:
    case STATEMENT.deleteApplication:
    case STATEMENT.insertApplicationKey:
    case STATEMENT.deleteApplicationKey:
    case STATEMENT.updateTenant:
    case STATEMENT.deleteTenant:
    case STATEMENT.insertSession:
    case STATEMENT.authorizeSession:
    case STATEMENT.deleteProxy:
    case STATEMENT.deleteReactor:
      return { kind: 'absent' }
    case STATEMENT.putAccessState:
      return { kind: 'access-changed' }
    case STATEMENT.updateProxy:
      return { kind: 'proxy-changed' }
    case STATEMENT.updateReactor:
      return { kind: 'reactor-changed' }
    case STATEMENT.claimJob:
    case STATEMENT.updateJob:
    case STATEMENT.deleteJob:
      return { kind: 'job-changed' }
    case STATEMENT.putCallbackSecrets:
      return { kind: 'callback-secrets-changed' }
    case STATEMENT.updateToken:
    case STATEMENT.updateOwnToken:
    case STATEMENT.pendUpdate:
    case STATEMENT.removeToken:
    case STATEMENT.removeOwnToken:
    case STATEMENT.pendRemoval:
      return { kind: 'token-changed' }
    case STATEMENT.refuseLocked:
      return { kind: 'token-locked' }
    case STATEMENT.openTransaction:
      return { kind: 'transactions-open-max' }
    case STATEMENT.refuseFull:
    case STATEMENT.refuseParkedFull:
      return { kind: 'transaction-full' }
    case STATEMENT.refuseRevoked:
      return { kind: 'transaction-revoked' }
    case STATEMENT.requireOpen:
    case STATEMENT.endTransaction:
    case STATEMENT.expireTransaction:
      return { kind: 'transaction-not-open' }
    case STATEMENT.refuseDuplicate:
    case STATEMENT.refuseOtherDuplicate:
    case STATEMENT.refuseDuplicateWithin:
      return { kind: 'fingerprint-taken', type: token!.type, fingerprint: token!.fingerprint! }
    default:
      return { kind: 'token-id-taken', id: token!.id }
  }
}

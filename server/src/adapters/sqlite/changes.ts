import { isUuid } from '../../base/id.ts'
import { IDEMPOTENCY_LIFETIME_MS } from '../../base/limits.ts'
import { writeEntry, eventsOf } from '../../world/record.ts'
import type { Change, Conflict, StoredToken } from '../../world/store.ts'
import type { BatchPacker, Value } from './batch.ts'
import type { Refused } from './run-batch.ts'
import { packSeal } from './record-reader.ts'
import { STATEMENT } from './statements.ts'

/** What packing a token depends on besides the token. */
export interface TokenContext {
  readonly tenantId: string
  /** The unit it stays invisible with; null when the commit is whole by itself. */
  readonly unit: number | null
  /** Whether any tenant's token goes by a uuid that is not its serial. */
  readonly uuidNames: boolean
}

/** Packs every change but inserted tokens, which the caller deals with. */
export function packChange(packer: BatchPacker, tenantId: string, change: Change): void {
  switch (change.kind) {
    case 'install':
      packer.step(STATEMENT.install, [1, change.rootKey.id, change.rootKey.check])
      return

    case 'insert-tenant': {
      const { tenant, keys } = change
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
      for (const { purpose, version, wrapped, createdAt } of keys) {
        packer.step(STATEMENT.insertTenantKey, [tenant.id, purpose, version, wrapped, createdAt])
      }
      return
    }

    case 'insert-application':
    case 'update-application': {
      const { application: it, kind } = change
      const { insertApplication, updateApplication } = STATEMENT
      packer.step(kind === 'insert-application' ? insertApplication : updateApplication, [
        tenantId,
        it.id,
        it.name,
        it.type,
        JSON.stringify(it.permissions),
        JSON.stringify(it.rules),
        it.expiresAt,
        it.createdBy,
        it.createdAt,
        it.modifiedBy,
        it.modifiedAt,
      ])
      return
    }

    case 'delete-application':
      packer.step(STATEMENT.deleteApplication, [tenantId, change.id])
      return

    case 'insert-application-key': {
      const { key } = change
      packer.step(STATEMENT.insertApplicationKey, [
        tenantId,
        key.applicationId,
        key.id,
        key.hash,
        key.prefix,
        key.version,
        key.createdBy,
        key.createdAt,
      ])
      return
    }

    case 'delete-application-key':
      packer.step(STATEMENT.deleteApplicationKey, [tenantId, change.applicationId, change.id])
      return

    case 'remember-answer': {
      const { id, status, body, expiresAt } = change.answer
      const madeAt = expiresAt - IDEMPOTENCY_LIFETIME_MS
      packer.step(STATEMENT.rememberAnswer, [tenantId, id, status, body, expiresAt, madeAt])
      packer.step(STATEMENT.forgetAnswers, [madeAt])
      return
    }

    case 'insert-tokens':
      return

    case 'append-record':
      for (const entry of change.entries) {
        packer.step(STATEMENT.appendRecord, [tenantId, eventsOf(entry), writeEntry(entry)])
      }
      return

    case 'park-record': {
      const { transactionId, entries } = change
      for (const entry of entries) {
        const values = [tenantId, transactionId, eventsOf(entry), writeEntry(entry)]
        packer.step(STATEMENT.parkRecord, values)
      }
      return
    }

    case 'append-parked-record':
      packer.step(STATEMENT.takeParkedRecord, [tenantId, change.transactionId])
      packer.step(STATEMENT.dropParkedRecord, [tenantId, change.transactionId])
      return

    case 'drop-parked-record':
      packer.step(STATEMENT.dropParkedRecord, [tenantId, change.transactionId])
      return

    case 'trim-record': {
      const { number, listed, hash } = change.removed
      packer.step(STATEMENT.trimRecord, [tenantId, number])
      packer.step(STATEMENT.moveRecordBegin, [tenantId, number, listed, hash])
      return
    }

    case 'seal-record': {
      const { seal } = change
      packer.step(STATEMENT.sealRecord, [tenantId, seal.last.number, packSeal(seal)])
      return
    }

    default:
      throw new TypeError('Cannot commit: a change is of no known kind', {
        cause: change satisfies never,
      })
  }
}

/** Packs one token, after the questions that must be answered first. */
export function packToken(packer: BatchPacker, context: TokenContext, token: StoredToken): void {
  const { tenantId } = context
  const { id, serial, type, fingerprint, createdAt } = token
  if (token.deduplicate && fingerprint !== null) {
    packer.step(STATEMENT.refuseTwin, [tenantId, type, fingerprint, createdAt])
  }
  if (context.uuidNames) packer.step(STATEMENT.refuseUuidName, [tenantId, serial])
  if (isNamedByUuid(token)) packer.step(STATEMENT.refuseSerial, [tenantId, id])
  const { cvc, metadata, details } = token
  const values: Value[] = id === serial ? [tenantId, serial] : [tenantId, serial, id]
  values.push(
    type,
    packContainers(token.containers),
    token.data,
    cvc === null ? null : cvc.envelope,
    cvc === null ? null : cvc.expiresAt,
    metadata === null ? null : JSON.stringify(metadata),
    details === null ? null : JSON.stringify(details),
    fingerprint,
    token.deduplicate ? 1 : null,
    packIndexes(token.indexes),
    token.expiresAt,
    token.createdBy,
    createdAt,
    token.modifiedBy,
    token.modifiedAt,
    context.unit,
  )
  packer.step(id === serial ? STATEMENT.insertToken : STATEMENT.insertNamedToken, values)
  for (const hash of token.indexes) {
    packer.step(STATEMENT.insertTokenIndex, [tenantId, hash, serial])
  }
}

/** Packs the removal of a token that nobody has seen. */
export function packRemoval(packer: BatchPacker, tenantId: string, token: StoredToken): void {
  packer.step(STATEMENT.deleteToken, [tenantId, token.serial])
  for (const hash of token.indexes) {
    packer.step(STATEMENT.deleteTokenIndex, [tenantId, hash, token.serial])
  }
}

/** Returns the conflict that a refused step stands for; `tokens` are those of the commit, in order. */
export function conflictOf(
  { statement, tokens: before }: Refused,
  tokens: readonly StoredToken[],
): Conflict {
  const token = tokens[before]
  switch (statement) {
    case STATEMENT.install:
      return { kind: 'installed' }
    case STATEMENT.insertTenant:
      return { kind: 'tenant-taken' }
    case STATEMENT.rememberAnswer:
      return { kind: 'answer-taken' }
    case STATEMENT.updateApplication:
    case STATEMENT.deleteApplication:
    case STATEMENT.insertApplicationKey:
    case STATEMENT.deleteApplicationKey:
      return { kind: 'absent' }
    case STATEMENT.refuseTwin:
      return { kind: 'fingerprint-taken', type: token!.type, fingerprint: token!.fingerprint! }
    default:
      return { kind: 'token-id-taken', id: token!.id }
  }
}

export function isNamedByUuid({ id, serial }: StoredToken): boolean {
  return id !== serial && isUuid(id)
}

function packContainers(containers: readonly string[]): string {
  const [only] = containers
  if (containers.length === 1 && !only!.startsWith('[')) return only!
  return JSON.stringify(containers)
}

export function unpackContainers(text: string): string[] {
  return text.startsWith('[') ? JSON.parse(text) : [text]
}

function packIndexes(indexes: readonly Uint8Array[]): Uint8Array | null {
  if (indexes.length === 0) return null
  return Buffer.concat(indexes.flatMap((hash) => [Uint8Array.of(hash.length), hash]))
}

export function unpackIndexes(bytes: Uint8Array): Uint8Array[] {
  const indexes: Uint8Array[] = []
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + 1 + bytes[at]!
    indexes.push(bytes.slice(at + 1, end))
  }
  return indexes
}

/** Inserts tokens, after the checks for conflicts. */
import { isUuid } from '../../../base/id.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import type { SqliteValue } from './batch.ts'
import { packDuplicateCheck } from './duplicate-checks.ts'
import { packIndexTerms } from './index-term-rows.ts'
import { insert } from './several-rows.ts'
import type { Param, Statement } from './statements.ts'
import { CONTENT, packContent } from './token-content.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'
import { DEAD, EXPIRE, numberOf } from './visibility.ts'

const { modified_by, modified_at, revision: _revision, ...REST } = CONTENT

const COLUMNS = {
  type: 'text',
  ...REST,
  created_by: 'id',
  created_at: 'integer',
  modified_by,
  modified_at,
  unit: 'integer',
} as const

const UNNAMED = { tenant: 'id', serial: 'id', ...COLUMNS } as const
const NAMED = { tenant: 'id', serial: 'id', name: 'id', ...COLUMNS } as const

export const TOKEN_INSERT_TABLE = {
  insertToken: {
    ...insert('token-id-taken', 'tokens', UNNAMED),
    plain: true,
    varyingColumns: indexesIn(UNNAMED, [
      'serial',
      'data',
      'cvc',
      'cvc_expires_at',
      'fingerprint',
      'created_at',
    ]),
  },

  insertNamedToken: insert('token-id-taken', 'tokens', NAMED),

  /** Inserts into the own staging batch of the transaction given last. The name is null if it equals the internal id. */
  insertEnlistedToken: insertEnlisted({ ...NAMED, unit: 'id' }),

  /** Names and internal ids share one namespace. */
  refuseInternalId: {
    sql: 'SELECT 1 FROM tokens WHERE tenant = ? AND serial = ?',
    params: ['id', 'id'],
    refuses: 'if-found',
    conflict: 'token-id-taken',
  },

  refuseUuidName: {
    sql: "SELECT 1 FROM tokens WHERE typeof(name) = 'blob' AND tenant = ? AND name = ?",
    params: ['id', 'id'],
    refuses: 'if-found',
    conflict: 'token-id-taken',
  },

  expireHolderOfName: {
    sql: `UPDATE transactions SET ${EXPIRE} WHERE state = 'open' AND expires_at <= ?3
      AND number = (SELECT holder FROM tokens JOIN units ON units.id = tokens.unit
        WHERE tokens.tenant = ?1 AND name = ?2)`,
    params: ['id', 'id', 'integer'],
  },

  /** Frees an id reserved by a transaction that was rolled back or expired. Its row is swept by internal id. */
  freeName: {
    sql: `UPDATE tokens SET name = NULL WHERE tenant = ?1 AND name = ?2 AND EXISTS
      (SELECT 1 FROM units CROSS JOIN transactions ON number = holder
        WHERE units.id = tokens.unit AND state IN ${DEAD})`,
    params: ['id', 'id'],
  },

  deleteToken: {
    sql: 'DELETE FROM tokens WHERE tenant = ? AND serial = ?',
    params: ['id', 'id'],
    // A duplicate that expired meanwhile may have been swept.
    plain: true,
  },
} as const satisfies Record<string, Statement>

/** Indexes of the values that tokens are counted by, in a step that inserts a token. */
export const COUNTED = countedIn(UNNAMED)
export const COUNTED_NAMED = countedIn(NAMED)

function countedIn(columns: typeof UNNAMED) {
  const [tenant, type, createdAt, unit] = indexesIn(columns, [
    'tenant',
    'type',
    'created_at',
    'unit',
  ]) as [number, number, number, number]
  return { tenant, type, createdAt, unit }
}

function indexesIn<Name extends string>(
  columns: Readonly<Record<Name, Param>>,
  names: readonly NoInfer<Name>[],
): readonly number[] {
  return names.map((it) => Object.keys(columns).indexOf(it))
}

/** The last parameter is a transaction id, which determines the staging batch. */
function insertEnlisted(params: Readonly<Record<string, Param>>): Statement {
  const columns = Object.keys(params)
  const values = columns.map((_column, n) => `?${n + 1}`)
  values[columns.length - 1] = `-${numberOf('?1', `?${columns.length}`)}`
  return {
    sql: `INSERT INTO tokens (${columns.join(', ')}) VALUES (${values.join(', ')}) ON CONFLICT DO NOTHING`,
    params: Object.values(params),
    refuses: 'if-nothing-changed',
    conflict: 'token-id-taken',
  }
}

/** The context that packing a token depends on. In a transaction, single tokens go to its own staging batch. */
export interface TokenContext extends SqliteUnitOfWork {
  /** The staging batch that hides it; null if the commit is applied at once. */
  readonly stagingBatch: number | null
  /** Whether any token of any tenant has a uuid as its name that is not its internal id. */
  readonly uuidNames: boolean
  /** Whether a transaction was ever opened. */
  readonly transactions: boolean
}

/** Packs one token, after the checks that must precede it. */
export function packToken(context: TokenContext, token: StoredToken): void {
  const { packer, tenantId, within } = context
  const { id, internalId, createdAt } = token
  if (token.deduplicate && token.fingerprint !== null) {
    packDuplicateCheck(context, token, { now: createdAt, isNew: true })
  }
  if (context.uuidNames) packer.step('refuseUuidName', [tenantId, internalId])
  if (isNamedByUuid(token)) packer.step('refuseInternalId', [tenantId, id])
  if (context.transactions && id !== internalId) {
    packer.step('expireHolderOfName', [tenantId, id, createdAt])
    packer.step('freeName', [tenantId, id])
  }
  const single = within !== null && context.stagingBatch === null
  let at = 0
  row[at++] = tenantId
  row[at++] = internalId
  if (id !== internalId || single) row[at++] = id === internalId ? null : id
  row[at++] = token.type
  at = packContent(row, at, token)
  row[at++] = token.createdBy
  row[at++] = createdAt
  row[at++] = token.modifiedBy
  row[at++] = token.modifiedAt
  row[at++] = single ? within : context.stagingBatch
  if (single) packer.step('insertEnlistedToken', row)
  else packer.step(id === internalId ? 'insertToken' : 'insertNamedToken', row)
  packIndexTerms(context, 'insertIndexTerm', token)
}

/** Reused for every token: in bulk, allocating an array for each would be half the cost of packing. */
const row: SqliteValue[] = []

/** Packs the removal of a staged token, which was never visible. */
export function packRemoval(unitOfWork: SqliteUnitOfWork, token: StoredToken): void {
  unitOfWork.packer.step('deleteToken', [unitOfWork.tenantId, token.internalId])
  packIndexTerms(unitOfWork, 'deleteIndexTerm', token)
}

export function isNamedByUuid({ id, internalId }: StoredToken): boolean {
  return id !== internalId && isUuid(id)
}

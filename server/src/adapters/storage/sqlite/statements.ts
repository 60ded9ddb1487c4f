import type { Conflict } from '../../../ports/change.ts'
import { CHANGE_TABLE } from './change-statements.ts'
import { clearing, isCleared } from './clearing-statements.ts'
import { entityStatements } from './entity-changes.ts'
import { renewals } from './envelope-statements.ts'
import { KEY_TABLE } from './key-statements.ts'
import { JOB_TABLE } from './job-statements.ts'
import { NOTICE_TABLE } from './notice-statements.ts'
import { AUDIT_LOG_TABLE } from './audit-log-statements.ts'
import { SESSION_TABLE } from './session-statements.ts'
import { rowOf } from './several-rows.ts'
import { SWEEP_TABLE } from './sweep-statements.ts'
import { TRANSACTION_TABLE } from './transaction-statements.ts'
import { BY_FINGERPRINT, numberOf } from './visibility.ts'

/**
 * Every statement that writes, by number, so that a step sent to the writer is a byte and its parameters.
 *
 * `params` gives the type of each parameter; `refuses` gives when a step is refused: if it changed nothing, found
 * something or found nothing; and `conflict` what the commit met then, null if that cannot happen. `plain` steps are almost never refused, so a commit of plain steps alone runs without a
 * savepoint and, if one is refused, runs again with one.
 */
export type Statement = WriteStatement & StatementOutcome

type StatementOutcome =
  | { readonly refuses: 'never' }
  | {
      readonly refuses: 'if-nothing-changed' | 'if-found' | 'if-absent'
      readonly conflict: Conflict['kind'] | null
    }

interface WriteStatement {
  readonly sql: string
  readonly params: readonly Param[]
  readonly plain?: true
  /**
   * Set if the statement may run for several rows at once, which usually differ only in the columns of these indexes.
   * Its `sql` has VALUES with one row of parameters. See SeveralRows.
   */
  readonly varyingColumns?: readonly number[]
}

/** An id is sent as 16 bytes if it is a uuid, as text otherwise. */
export type Param = 'id' | 'text' | 'bytes' | 'integer'

const TOKEN_PARAMS = {
  type: 'text',
  containers: 'text',
  data: 'bytes',
  cvc: 'bytes',
  cvc_expires_at: 'integer',
  metadata: 'text',
  details: 'text',
  fingerprint: 'text',
  deduplicate: 'integer',
  indexes: 'bytes',
  expires_at: 'integer',
  created_by: 'id',
  created_at: 'integer',
  modified_by: 'id',
  modified_at: 'integer',
  unit: 'integer',
} as const

const TOKEN_INDEX = { tenant: 'id', hash: 'bytes', serial: 'id' } as const

const TABLE = {
  install: insert('installed', 'installation', {
    one: 'integer',
    root_key_id: 'text',
    root_key_check: 'bytes',
  }),

  insertTenant: insert('tenant-taken', 'tenants', {
    id: 'id',
    name: 'text',
    plan: 'text',
    settings: 'text',
    created_by: 'id',
    created_at: 'integer',
    modified_by: 'id',
    modified_at: 'integer',
  }),

  ...entityStatements(),

  insertToken: {
    ...insert('token-id-taken', 'tokens', { tenant: 'id', serial: 'id', ...TOKEN_PARAMS }),
    plain: true,
    varyingColumns: columnsOf(
      { tenant: 'id', serial: 'id', ...TOKEN_PARAMS },
      'serial',
      'data',
      'cvc',
      'cvc_expires_at',
      'fingerprint',
      'created_at',
    ),
  },

  insertNamedToken: insert('token-id-taken', 'tokens', {
    tenant: 'id',
    serial: 'id',
    name: 'id',
    ...TOKEN_PARAMS,
  }),

  /** Inserts into the own staging batch of the transaction given last. The name is null if it equals the internal id. */
  insertEnlistedToken: insertEnlisted({
    tenant: 'id',
    serial: 'id',
    name: 'id',
    ...TOKEN_PARAMS,
    unit: 'id',
  }),

  insertTokenIndex: {
    sql: `${insertInto('token_indexes', TOKEN_INDEX)} ON CONFLICT DO NOTHING`,
    params: Object.values(TOKEN_INDEX),
    refuses: 'never',
    plain: true,
  },

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

  /**
   * Staged duplicates count although they are invisible, or two could be created at once. Those in transactions do
   * not count outside them.
   */
  refuseDuplicate: {
    sql: `SELECT 1 FROM ${BY_FINGERPRINT}
      WHERE tenant = ? AND type = ? AND fingerprint = ? AND (expires_at IS NULL OR expires_at > ?)
        AND (unit IS NULL OR NOT EXISTS (SELECT 1 FROM units
          WHERE units.id = tokens.unit AND holder IS NOT NULL))`,
    params: ['id', 'text', 'text', 'integer'],
    refuses: 'if-found',
    conflict: 'fingerprint-taken',
  },

  openStagingBatch: {
    sql: 'INSERT INTO units (id, tenant, first_serial, last_serial) VALUES (?, ?, ?, ?)',
    params: ['integer', 'id', 'id', 'id'],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
  },

  closeStagingBatch: {
    sql: 'DELETE FROM units WHERE id = ?',
    params: ['integer'],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
  },

  deleteToken: {
    sql: 'DELETE FROM tokens WHERE tenant = ? AND serial = ?',
    params: ['id', 'id'],
    // A duplicate that expired meanwhile may have been swept.
    refuses: 'never',
    plain: true,
  },

  deleteTokenIndex: {
    sql: 'DELETE FROM token_indexes WHERE tenant = ? AND hash = ? AND serial = ?',
    params: ['id', 'bytes', 'id'],
    refuses: 'never',
    plain: true,
  },

  /** Replaces an answer that had expired at the time of the last parameter. */
  rememberAnswer: {
    sql: `INSERT INTO answers (tenant, id, status, body, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (tenant, id) DO UPDATE
      SET status = excluded.status, body = excluded.body, expires_at = excluded.expires_at
      WHERE expires_at <= ?6`,
    params: ['id', 'id', 'integer', 'bytes', 'integer', 'integer'],
    refuses: 'if-nothing-changed',
    conflict: 'answer-taken',
    plain: true,
  },

  /** Removes two for every new one: they never pile up, and no commit pays for many. */
  forgetAnswers: {
    sql: `DELETE FROM answers WHERE rowid IN
      (SELECT rowid FROM answers WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)`,
    params: ['integer'],
    refuses: 'never',
    plain: true,
  },

  countTokens: {
    sql: `INSERT INTO token_counts (tenant, unit, type, day, count, last_created_at)
      VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET count = count + excluded.count,
        last_created_at = max(last_created_at, excluded.last_created_at)`,
    params: ['id', 'integer', 'text', 'integer', 'integer', 'integer'],
    refuses: 'never',
    plain: true,
  },

  refuseTenantName: {
    sql: 'SELECT 1 FROM tenants WHERE name = ?',
    params: ['text'],
    refuses: 'if-found',
    conflict: 'tenant-taken',
  },

  deleteTenantKeys: {
    sql: 'DELETE FROM tenant_keys WHERE tenant = ?',
    params: ['id'],
    refuses: 'never',
  },

  deleteTenant: {
    sql: 'DELETE FROM tenants WHERE id = ?',
    params: ['id'],
    refuses: 'if-nothing-changed',
    conflict: 'absent',
  },

  noteDeletedTenant: insert(null, 'deleted_tenants', { id: 'id', deleted_at: 'integer' }),

  ...clearing(),

  forgetDeletedTenant: {
    sql: `DELETE FROM deleted_tenants WHERE id = ?1 AND deleted_at < ?2
      AND ${isCleared('?1')}`,
    params: ['id', 'integer'],
    refuses: 'never',
  },

  beat: {
    sql: 'UPDATE pulse SET beats = beats + 1',
    params: [],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
  },

  ...SESSION_TABLE,
  ...NOTICE_TABLE,
  ...KEY_TABLE,
  ...renewals(),
  ...AUDIT_LOG_TABLE,
  ...CHANGE_TABLE,
  ...TRANSACTION_TABLE,
  ...JOB_TABLE,
  ...SWEEP_TABLE,
} as const satisfies Record<string, Statement>

type StatementName = keyof typeof TABLE

export const STATEMENTS: readonly Statement[] = Object.values(TABLE)

/** The number of each statement. */
export const STATEMENT = Object.fromEntries(
  Object.keys(TABLE).map((name, number) => [name, number]),
) as Readonly<Record<StatementName, number>>

/** Indexes of the values that tokens are counted by, in a step that inserts a token. */
export const COUNTED = countedIn(['tenant', 'serial', ...Object.keys(TOKEN_PARAMS)])
export const COUNTED_NAMED = countedIn(['tenant', 'serial', 'name', ...Object.keys(TOKEN_PARAMS)])

function countedIn(columns: readonly string[]) {
  const [tenant, type, createdAt, unit] = ['tenant', 'type', 'created_at', 'unit'].map((it) =>
    columns.indexOf(it),
  ) as [number, number, number, number]
  return { tenant, type, createdAt, unit }
}

/** Statements that insert a token; the last parameter is its staging batch or its transaction. */
export const INSERTS_TOKEN: ReadonlySet<number> = new Set([
  STATEMENT.insertToken,
  STATEMENT.insertNamedToken,
  STATEMENT.insertEnlistedToken,
])

function insert(
  conflict: Conflict['kind'] | null,
  table: string,
  params: Readonly<Record<string, Param>>,
): Statement {
  return {
    sql: `${insertInto(table, params)} ON CONFLICT DO NOTHING`,
    params: Object.values(params),
    refuses: 'if-nothing-changed',
    conflict,
  }
}

function insertInto(table: string, params: Readonly<Record<string, Param>>): string {
  const columns = Object.keys(params)
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${rowOf(columns.length)}`
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

function columnsOf<Name extends string>(
  params: Readonly<Record<Name, Param>>,
  ...names: NoInfer<Name>[]
): readonly number[] {
  return names.map((it) => Object.keys(params).indexOf(it))
}

/**
 * The contents of a vault, table by table, independent of any store: the data copied when it moves from one store to another.
 * Everything else in a store is derived from it.
 */

import {
  ENTITIES,
  ENTITY_NAMES,
  tenantColumnOf,
  type EntityName,
  type EntityTable,
} from './store/entities.ts'
import { columnsOf, keyColumnsOf } from './store/entity-columns.ts'

export type VaultValue = string | number | boolean | Uint8Array | null

/** In the order of the table's columns. */
export type VaultRow = readonly VaultValue[]

/** The type of a column, and so how each store keeps it; any may be null. */
export type VaultColumn =
  /** A UUID of ours. */
  | 'id'
  /** An id that a caller may have chosen. */
  | 'name'
  | 'text'
  /** Written by packContainers(). */
  | 'containers'
  /** A JSON object of strings, without spaces. */
  | 'metadata'
  | 'bytes'
  | 'number'
  | 'flag'

export interface VaultTable {
  readonly columns: Readonly<Record<string, VaultColumn>>
  /** The columns of the primary key, the tenant first. */
  readonly key: readonly string[]
}

const MADE = { created_by: 'name', created_at: 'number' } as const
const MODIFIED = { modified_by: 'name', modified_at: 'number' } as const
const OWN = { tenant: 'id', id: 'id' } as const

/** The columns of a token that may change. */
const CONTENT = {
  containers: 'containers',
  data: 'bytes',
  cvc: 'bytes',
  cvc_expires_at: 'number',
  metadata: 'metadata',
  details: 'text',
  fingerprint: 'text',
  deduplicate: 'flag',
  indexes: 'bytes',
  expires_at: 'number',
  ...MODIFIED,
  revision: 'number',
} as const

/** First those that identify the vault. Their order stays, so that a move that an earlier version began can go on. */
const ORDERED_TABLES = {
  installation: {
    columns: { one: 'number', root_key_id: 'text', root_key_check: 'bytes' },
    key: ['one'],
  },
  tenants: tableOf('tenant'),
  tenant_keys: tableOf('tenant_key'),
  deleted_tenants: { columns: { id: 'id', deleted_at: 'number' }, key: ['id'] },
  applications: tableOf('application'),
  application_keys: tableOf('application_key'),
  sessions: tableOf('session'),
  proxies: tableOf('proxy'),
  reactors: tableOf('reactor'),
  callback_secrets: tableOf('callback_secret'),
  jobs: tableOf('job'),
  answers: tableOf('answer'),
  transactions: {
    columns: { ...OWN, state: 'text', ...MADE, expires_at: 'number', unswept: 'flag' },
    key: ['tenant', 'id'],
  },
  transaction_keys: {
    columns: {
      tenant: 'id',
      transaction_id: 'id',
      application: 'id',
      /** All zero for the application itself, whatever keys it has. */
      application_key: 'id',
    },
    key: ['tenant', 'transaction_id', 'application', 'application_key'],
  },
  tokens: {
    columns: {
      tenant: 'id',
      serial: 'id',
      /** Its id, if it differs from the internal id. */
      name: 'name',
      type: 'text',
      ...CONTENT,
      ...MADE,
      /** The transaction it was made in, until that is committed. */
      made_in: 'id',
    },
    key: ['tenant', 'serial'],
  },
  token_indexes: {
    columns: { tenant: 'id', hash: 'bytes', serial: 'id' },
    key: ['tenant', 'hash', 'serial'],
  },
  token_counts: {
    columns: {
      tenant: 'id',
      /** As for tokens; all zero for visible ones. */
      made_in: 'id',
      type: 'text',
      day: 'number',
      count: 'number',
      last_created_at: 'number',
    },
    key: ['tenant', 'made_in', 'type', 'day'],
  },
  pending: {
    columns: { tenant: 'id', serial: 'id', holder: 'id', deleted: 'flag', ...CONTENT },
    key: ['tenant', 'serial'],
  },
  record_heads: {
    columns: {
      tenant: 'id',
      removed_number: 'number',
      removed_listed: 'number',
      removed_hash: 'bytes',
      number: 'number',
      listed: 'number',
      hash: 'bytes',
      sealed_number: 'number',
      seal: 'text',
      access_revision: 'number',
      access: 'text',
    },
    key: ['tenant'],
  },
  record: {
    columns: {
      tenant: 'id',
      number: 'number',
      listed: 'number',
      entry: 'bytes',
      hash: 'bytes',
    },
    key: ['tenant', 'number'],
  },
  record_parked: {
    columns: {
      tenant: 'id',
      transaction_id: 'name',
      position: 'number',
      events: 'number',
      entry: 'bytes',
    },
    key: ['tenant', 'transaction_id', 'position'],
  },
  notices: { columns: { id: 'id', notice: 'text', created_at: 'number' }, key: ['id'] },
} as const satisfies Record<string, VaultTable>

/** In the order in which they move. */
export const VAULT_TABLES = { ...ORDERED_TABLES, ...youngerTables() } as const

type YoungerTable = Exclude<EntityTable, keyof typeof ORDERED_TABLES>

/** Returns the tables of the described entities that are not listed above. */
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- until there is one
function youngerTables(): Readonly<Record<YoungerTable, VaultTable>> {
  const younger = ENTITY_NAMES.filter((it) => !(ENTITIES[it].table in ORDERED_TABLES))
  return Object.fromEntries(younger.map((it) => [ENTITIES[it].table, tableOf(it)]))
}

/** Returns the table of a described entity. */
function tableOf(name: EntityName): VaultTable {
  const columns = columnsOf(name).map(({ name: column, kind }): [string, VaultColumn] => [
    column,
    kind === 'json' ? 'text' : kind,
  ])
  const tenant = tenantColumnOf(name)
  const key = [tenant, ...keyColumnsOf(name).map((it) => it.name)]
  return { columns: { [tenant]: 'id', ...Object.fromEntries(columns) }, key }
}

export type VaultTableName = keyof typeof VAULT_TABLES

export const VAULT_TABLE_NAMES = Object.keys(VAULT_TABLES) as readonly VaultTableName[]

/** A chunk of a table in an order of the store's own. */
export interface VaultChunk {
  /** Empty at the end of the table. */
  readonly rows: readonly VaultRow[]
  /** Position of the last row, to be passed in for the next chunk; meaningful to this store alone. */
  readonly last: string | null
}

/** Reads the contents of a vault. */
export interface VaultReader {
  /**
   * Returns the rows after the row `after`, or the first ones: at most MOVE_ROWS_AT_ONCE rows, ending with the row that brings
   * them to MOVE_BYTES_AT_ONCE bytes.
   */
  readChunk(table: VaultTableName, after: string | null): Promise<VaultChunk>
}

/** The progress of a move: all tables before this one have arrived, and this one up to the source's position `after`. */
export interface MovePoint {
  readonly table: VaultTableName
  readonly after: string | null
}

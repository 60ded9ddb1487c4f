/**
 * Everything that a vault holds, table by table, in a form that belongs to no store: what crosses when it moves from
 * one to another. What a store keeps besides is derived from this.
 */

export type VaultValue = string | number | boolean | Uint8Array | null

/** In the order of the table's columns. */
export type VaultRow = readonly VaultValue[]

/** What a column holds, and so how each store keeps it; any may be null. */
export type VaultColumn =
  /** A uuid of ours. */
  | 'id'
  /** An id that a caller may have chosen. */
  | 'name'
  | 'text'
  /** As packContainers() writes them. */
  | 'containers'
  /** A JSON object of texts, without spaces. */
  | 'metadata'
  | 'bytes'
  | 'number'
  | 'flag'

export interface VaultTable {
  readonly columns: Readonly<Record<string, VaultColumn>>
  /** The columns that name a row, the tenant first. */
  readonly key: readonly string[]
}

const MADE = { created_by: 'name', created_at: 'number' } as const
const MODIFIED = { modified_by: 'name', modified_at: 'number' } as const
const OWN = { tenant: 'id', id: 'id' } as const

/** What may change of a token. */
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

const DEFINITION = {
  name: 'text',
  terms: 'bytes',
  ...MADE,
  ...MODIFIED,
  revision: 'number',
} as const

/** In the order in which they move: first what a vault is known by. */
export const VAULT_TABLES = {
  installation: {
    columns: { one: 'number', root_key_id: 'text', root_key_check: 'bytes' },
    key: ['one'],
  },
  tenants: {
    columns: { id: 'id', name: 'text', plan: 'text', settings: 'text', ...MADE, ...MODIFIED },
    key: ['id'],
  },
  tenant_keys: {
    columns: {
      tenant: 'id',
      purpose: 'text',
      version: 'number',
      wrapped: 'bytes',
      created_at: 'number',
    },
    key: ['tenant', 'purpose', 'version'],
  },
  deleted_tenants: { columns: { id: 'id', deleted_at: 'number' }, key: ['id'] },
  applications: {
    columns: {
      ...OWN,
      name: 'text',
      type: 'text',
      permissions: 'text',
      rules: 'text',
      destinations: 'text',
      expires_at: 'number',
      ...MADE,
      ...MODIFIED,
    },
    key: ['tenant', 'id'],
  },
  application_keys: {
    columns: {
      ...OWN,
      application: 'id',
      hash: 'bytes',
      prefix: 'text',
      version: 'number',
      ...MADE,
    },
    key: ['tenant', 'application', 'id'],
  },
  sessions: {
    columns: {
      ...OWN,
      application: 'id',
      application_key: 'id',
      hash: 'bytes',
      nonce_hash: 'bytes',
      created_at: 'number',
      expires_at: 'number',
      permissions: 'text',
      rules: 'text',
      authorized_by: 'id',
      authorized_with: 'id',
    },
    key: ['tenant', 'id'],
  },
  proxies: { columns: { ...OWN, hash: 'bytes', ...DEFINITION }, key: ['tenant', 'id'] },
  reactors: { columns: { ...OWN, ...DEFINITION }, key: ['tenant', 'id'] },
  callback_secrets: {
    columns: { tenant: 'id', secrets: 'bytes', revision: 'number' },
    key: ['tenant'],
  },
  jobs: {
    columns: {
      ...OWN,
      reactor: 'id',
      stage: 'text',
      claimed: 'flag',
      lane: 'text',
      due_at: 'number',
      attempts: 'number',
      created_at: 'number',
      terms: 'bytes',
      result: 'bytes',
      revision: 'number',
    },
    key: ['tenant', 'id'],
  },
  answers: {
    columns: { tenant: 'id', id: 'name', status: 'number', body: 'bytes', expires_at: 'number' },
    key: ['tenant', 'id'],
  },
  transactions: {
    columns: { ...OWN, state: 'text', ...MADE, expires_at: 'number', unswept: 'flag' },
    key: ['tenant', 'id'],
  },
  tokens: {
    columns: {
      tenant: 'id',
      serial: 'id',
      /** Its id, where that is not the internal id. */
      name: 'name',
      type: 'text',
      ...CONTENT,
      ...MADE,
      /** The transaction it was made in, unless that is committed. */
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
      /** As of tokens; all zero for those that are visible. */
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
} as const satisfies Record<string, VaultTable>

export type VaultTableName = keyof typeof VAULT_TABLES

export const VAULT_TABLE_NAMES = Object.keys(VAULT_TABLES) as readonly VaultTableName[]

/** A stretch of a table in an order of the store's own. */
export interface VaultChunk {
  /** None at the end of the table. */
  readonly rows: readonly VaultRow[]
  /** The last of them, to be handed in for the next chunk; a text that means something to this store alone. */
  readonly last: string | null
}

/** Whoever shows what a vault holds. */
export interface VaultReader {
  /**
   * Returns what comes after the row `after`, or what comes first: MOVE_ROWS_AT_ONCE rows at most, and as few as hold
   * MOVE_BYTES_AT_ONCE bytes.
   */
  readChunk(table: VaultTableName, after: string | null): Promise<VaultChunk>
}

/** Where a move is: of the tables before this one all has arrived, and of this one what the source calls `after`. */
export interface MovePoint {
  readonly table: VaultTableName
  readonly after: string | null
}

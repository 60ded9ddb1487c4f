/** A database as an attacker reaches it who can write to it but has no key, while no service runs. */
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import pg from 'pg'
import {
  openPostgresAuditLog,
  type PostgresAuditLogSnapshot,
} from '../../src/adapters/storage/postgres/audit-log-snapshot.ts'
import { openSqliteAuditLog } from '../../src/adapters/storage/sqlite/audit-log-snapshot.ts'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import type { Store } from '../../src/ports/store.ts'
import { openPatiently } from './postgres/patient-store.ts'

export type Row = Readonly<Record<string, SQLInputValue>>

export interface AttackedDatabase {
  /** The audit tables and those of access rows, with the columns of their keys. */
  readonly tables: Readonly<Record<string, readonly string[]>>
  readonly ask: (sql: string, values?: readonly SQLInputValue[]) => Promise<Row[]>
  /** Opens it as `symbolon audit verify` does. */
  readonly inspect: () => Promise<PostgresAuditLogSnapshot>
  /** Opens it as the service does. */
  readonly serve: () => Promise<Store>
  readonly close: () => Promise<void>
}

const RECORD = ['tenant', 'number']
const ACCESS = {
  applications: ['tenant', 'id'],
  application_keys: ['tenant', 'application', 'id'],
  sessions: ['tenant', 'id'],
}
const PARKED = ['tenant', 'transaction_id', 'position']

export class AttackedSqlite implements AttackedDatabase {
  readonly tables = { record: RECORD, record_heads: ['tenant'], record_parked: PARKED, ...ACCESS }
  readonly #folder: string
  #db: DatabaseSync | null = null

  constructor(folder: string) {
    this.#folder = folder
  }

  async ask(sql: string, values: readonly SQLInputValue[] = []): Promise<Row[]> {
    this.#db ??= new DatabaseSync(join(this.#folder, 'symbolon.db'), {
      enableForeignKeyConstraints: false,
      defensive: false,
    })
    return this.#db.prepare(sql).all(...values)
  }

  async inspect(): Promise<PostgresAuditLogSnapshot> {
    await this.close()
    const { close, ...opened } = openSqliteAuditLog(this.#folder)
    return { ...opened, close: async () => close() }
  }

  async serve(): Promise<Store> {
    await this.close()
    return await SqliteStore.open({ folder: this.#folder, onFault: () => {} })
  }

  async close(): Promise<void> {
    this.#db?.close()
    this.#db = null
  }
}

export class AttackedPostgres implements AttackedDatabase {
  readonly tables = { record: RECORD, tenant_heads: ['tenant'], record_parked: PARKED, ...ACCESS }
  readonly #url: string
  #client: pg.Client | null = null

  constructor(url: string) {
    this.#url = url
  }

  async ask(sql: string, values: readonly SQLInputValue[] = []): Promise<Row[]> {
    if (this.#client === null) {
      this.#client = new pg.Client(this.#url)
      await this.#client.connect()
    }
    let n = 0
    const numbered = sql.replaceAll('?', () => `$${++n}`)
    return (await this.#client.query<Row>(numbered, [...values])).rows
  }

  async inspect(): Promise<PostgresAuditLogSnapshot> {
    await this.close()
    return await openPostgresAuditLog(this.#url)
  }

  async serve(): Promise<Store> {
    await this.close()
    return await openPatiently(this.#url)
  }

  async close(): Promise<void> {
    await this.#client?.end()
    this.#client = null
  }
}

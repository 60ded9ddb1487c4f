import { hash } from 'node:crypto'
import { DatabaseError, type QueryConfig, type QueryResult } from 'pg'
import type { PrimaryClient } from './primary-client.ts'
import type { PostgresRow } from './rows.ts'

export type PostgresValue =
  | string
  | number
  | boolean
  | Uint8Array
  | null
  | readonly (string | number | boolean | Uint8Array | null)[]

/** An SQL text, or a named prepared statement. */
export type PostgresStatement = string | NamedStatement

/** A prepared statement, which a connection keeps under its name. */
interface NamedStatement {
  readonly name: string
  readonly text: string
}

/**
 * Returns a prepared statement: parsed and planned once per connection instead of each time. For queries that every
 * request makes. It must not select `*` of a table, or it fails when a newer server has added a column.
 *
 * The name contains a hash of the text. Behind a pooler that does not track names, servers of different versions share
 * connections: they get an error about an unknown statement, and never run each other's.
 */
export function kept(name: string, text: string): NamedStatement {
  return { name: `${name} ${hash('sha256', text).slice(0, 16)}`, text }
}

/** Runs one statement and returns its rows. */
export type AskPostgres = (
  sql: PostgresStatement,
  values?: readonly PostgresValue[],
) => Promise<PostgresRow[]>

/** A value of `synchronous_commit` that survives a power cut; `remote_apply` also waits until standbys show the commit. */
export type CommitLevel = 'on' | 'remote_apply'

/**
 * Raises the level of a transaction to the one given: a setting that is lowered with a reload would otherwise apply to the next
 * commit. A level that was raised stays.
 */
const AT_LEVEL: Readonly<Record<CommitLevel, string>> = {
  on: `set_config('synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`,
  remote_apply: "set_config('synchronous_commit', 'remote_apply', true)",
}

/** One connection, for the duration of a transaction, or of a command. */
export class Session {
  readonly #client: PrimaryClient
  #inTransaction = false
  readonly #commitLevel: CommitLevel
  /** Number of statements sent, for tests that count the cost of an operation. */
  sent = 0

  /** Writing transactions commit at `commitLevel` or higher, whatever the database is set to meanwhile. */
  constructor(client: PrimaryClient, commitLevel: CommitLevel = 'on') {
    this.#client = client
    this.#commitLevel = commitLevel
  }

  readonly ask: AskPostgres = async (sql, values = []) => {
    return (await this.#send(queryOf(sql, values))).rows
  }

  /** Runs one statement and returns the number of rows affected. */
  async run(sql: PostgresStatement, values: readonly PostgresValue[] = []): Promise<number> {
    return (await this.#send(queryOf(sql, values))).rowCount ?? 0
  }

  /** Begins a writing transaction, with one request. */
  async begin(): Promise<void> {
    this.#inTransaction = true
    const level = AT_LEVEL[this.#commitLevel]
    this.sent++
    await this.#client.begin('READ COMMITTED READ WRITE', [level])
  }

  async rollback(): Promise<void> {
    const done = this.run('ROLLBACK')
    this.#inTransaction = false
    await done
  }

  /**
   * Resolves when the transaction is durable. Rejects as if the answer were lost when the database warns meanwhile: it answers
   * COMMIT although the wait for a standby was cancelled, and warns that the transaction "might not have been replicated".
   */
  async commit(): Promise<void> {
    this.sent++
    this.#inTransaction = false
    const warnings: string[] = []
    // A warning about an earlier statement still in flight counts, too: our own cause none.
    const heed = ({ code, message }: CommitNotice): void => {
      if (code?.startsWith(SUCCESS) !== true) warnings.push(message ?? '')
    }
    this.#client.on('notice', heed)
    try {
      const { command } = await this.#client.query('COMMIT')
      if (command !== 'COMMIT') throw new Error('The transaction was rolled back')
    } finally {
      this.#client.removeListener('notice', heed)
    }
    if (warnings.length > 0) {
      throw new Error(`The database warned when it was asked to commit: ${warnings.join('; ')}`)
    }
  }

  async #send(query: QueryConfig): Promise<QueryResult<PostgresRow>> {
    this.sent++
    if (this.#inTransaction) return await this.#client.query<PostgresRow>(query)
    return await this.#client.runAlone(query, 'READ COMMITTED READ WRITE')
  }
}

/** A notice or a warning, as pg declares it. Its severity is translated; its code is not. */
interface CommitNotice {
  readonly code?: string | undefined
  readonly message?: string | undefined
}

/** Class of the codes of notices. Warnings have another. Source: postgresql.org, appendix "PostgreSQL Error Codes". */
const SUCCESS = '00'

/** Returns the query in pg's form. */
export function queryOf(sql: PostgresStatement, values: readonly PostgresValue[]): QueryConfig {
  return { ...(typeof sql === 'string' ? { text: sql } : sql), values: values as unknown[] }
}

/** Classifies an error. */
export type Trouble =
  /** Lost to a concurrent transaction: a retry may succeed. */
  | 'again'
  /** The values are at fault, not the database. */
  | 'own'
  /** The database does not answer, not in time, or is in no state to. */
  | 'away'

/** Classifies an error by the class of its code. Source: postgresql.org, appendix "PostgreSQL Error Codes". */
export function troubleOf(error: unknown): Trouble {
  if (!(error instanceof DatabaseError)) return 'away'
  const code = error.code ?? ''
  if (code === '40001' || code === '40P01') return 'again'
  return OWN.has(code.slice(0, 2)) ? 'own' : 'away'
}

/** Cardinality violation, data exception, integrity constraint violation, program limit exceeded. */
const OWN: ReadonlySet<string> = new Set(['21', '22', '23', '54'])

import { hash } from 'node:crypto'
import { DatabaseError, type ClientBase, type QueryConfig } from 'pg'
import type { PostgresRow } from './rows.ts'

export type PostgresValue =
  | string
  | number
  | boolean
  | Uint8Array
  | null
  | readonly (string | number | boolean | Uint8Array | null)[]

/** A statement. */
export type PostgresStatement = string | NamedStatement

/** One that a connection keeps by its name. */
interface NamedStatement {
  readonly name: string
  readonly text: string
}

/**
 * Returns a statement that is parsed and planned once on each connection, and not each time: for those that every request
 * asks. It may return no `*` of a table, or it fails when a newer server has added a column.
 *
 * Its text is part of its name: whoever shares connections with other versions, by a pooler that knows no names, is told
 * that there is no such statement, and never runs theirs.
 */
export function kept(name: string, text: string): NamedStatement {
  return { name: `${name} ${hash('sha256', text).slice(0, 16)}`, text }
}

/** Runs one statement and returns its rows. */
export type AskPostgres = (
  sql: PostgresStatement,
  values?: readonly PostgresValue[],
) => Promise<PostgresRow[]>

/** One connection, for as long as a transaction takes. */
export class Session {
  readonly #client: ClientBase
  /** How many statements were sent: for tests that count what something costs. */
  sent = 0

  constructor(client: ClientBase) {
    this.#client = client
  }

  readonly ask: AskPostgres = async (sql, values = []) => {
    this.sent++
    return (await this.#client.query<PostgresRow>(queryOf(sql, values))).rows
  }

  /** Runs one statement and returns how many rows it touched. */
  async run(sql: PostgresStatement, values: readonly PostgresValue[] = []): Promise<number> {
    this.sent++
    return (await this.#client.query(queryOf(sql, values))).rowCount ?? 0
  }

  /** Resolves when what the transaction did is durable. */
  async commit(): Promise<void> {
    this.sent++
    const { command } = await this.#client.query('COMMIT')
    if (command !== 'COMMIT') throw new Error('The transaction was rolled back')
  }
}

/** Returns what pg is asked. */
export function queryOf(sql: PostgresStatement, values: readonly PostgresValue[]): QueryConfig {
  return { ...(typeof sql === 'string' ? { text: sql } : sql), values: values as unknown[] }
}

/** What an error says about what it met. */
export type Trouble =
  /** Somebody was quicker: the same may succeed when it is tried again. */
  | 'again'
  /** The values are to blame, not the database. */
  | 'own'
  /** Nobody answers, or not in time, or it is no time for questions. */
  | 'away'

/** Conditions by the classes of their codes. Source: postgresql.org, appendix "PostgreSQL Error Codes". */
export function troubleOf(error: unknown): Trouble {
  if (!(error instanceof DatabaseError)) return 'away'
  const code = error.code ?? ''
  if (code === '40001' || code === '40P01') return 'again'
  return OWN.has(code.slice(0, 2)) ? 'own' : 'away'
}

/** Cardinality, data, constraints, limits of the program. */
const OWN: ReadonlySet<string> = new Set(['21', '22', '23', '54'])

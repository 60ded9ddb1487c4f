import pg, {
  DatabaseError,
  type ClientBase,
  type ClientConfig,
  type Pool,
  type PoolClient,
} from 'pg'
import { ServiceError } from '../../base/service-error.ts'
import type { PostgresRow } from './rows.ts'
import { queryOf, Session, troubleOf, type AskPostgres } from './session.ts'

/** Connections for questions, and for batches: two that are under way, one long list, one for the rest. */
const READERS_MAX = 8
const WRITERS_MAX = 4

/** How long a new connection may take. */
const CONNECT_MS_MAX = 4_000

/** How long the first one may take, at the start. */
const START_MS_MAX = 20_000

/** How long one statement may take, by the database's clock and by ours. */
const STATEMENT_MS_MAX = 4_000
const ANSWER_MS_MAX = 4_500

/** How long one waits for somebody else's lock, such as that of a tenant's chain tip. */
const LOCK_MS_MAX = 3_000

/** How long a connection may do nothing inside a transaction before the database ends it: its locks are in the way. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000

const IDLE_MS_MAX = 60_000

/** Reads wait for one of the connections no longer than they would for a new one; more of them are turned away. */
const WAITING_MAX = 2_000

/** How often a transaction that met somebody who was quicker is tried. */
export const TRIES_MAX = 5

/**
 * Connections to the database, made anew when they are lost.
 *
 * Nothing here waits for long: while the database refuses connections, everything is refused at once.
 */
export class Database {
  readonly #readers: Pool
  readonly #writers: Pool

  /** `deadlineFactor` multiplies the bounds of every connection. */
  constructor(settings: ClientConfig, deadlineFactor = 1) {
    const bounds = bounded(settings, deadlineFactor)
    this.#readers = poolOf(bounds, READERS_MAX)
    // What is sent before the last answer has come is on its way at once.
    this.#writers = poolOf({ ...bounds, pipeline: true }, WRITERS_MAX)
  }

  /** Runs one statement that reads. Rejects with `store_unavailable` when nobody answers. */
  readonly ask: AskPostgres = async (sql, values = []) => {
    if (this.#readers.waitingCount >= WAITING_MAX)
      throw unavailable(new Error('Too many reads wait'))
    for (let tries = 1; ; tries++) {
      try {
        return (await this.#readers.query<PostgresRow>(queryOf(sql, values))).rows
      } catch (error) {
        const trouble = troubleOf(error)
        if (trouble === 'own') throw error
        // A connection that the database has closed is found out by using it.
        const stale = trouble === 'away' && isBroken(error) && tries <= READERS_MAX
        if (!(trouble === 'again' && tries < TRIES_MAX) && !stale) throw unavailable(error)
      }
    }
  }

  /** Calls `work` with a connection, which is thrown away when `work` rejects. */
  async write<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    const client = await this.#writers.connect()
    try {
      const result = await work(new Session(client))
      client.release()
      return result
    } catch (error) {
      await giveBack(client, error)
      throw error
    }
  }

  /** Ends all connections once they are free. */
  async close(): Promise<void> {
    await Promise.all([this.#readers.end(), this.#writers.end()])
  }
}

/**
 * Calls `work` with a connection of its own, on which everything takes as long as it takes: for what is done before
 * anybody waits, such as migrations, and another server's.
 */
export async function atLeisure<Result>(
  settings: ClientConfig,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const client = await connectedTo({ ...settings, connectionTimeoutMillis: START_MS_MAX })
  try {
    return await work(new Session(client))
  } finally {
    await client.end()
  }
}

/**
 * Returns a connection. That it is lost later is found out by using it.
 *
 * Rejects with a sentence for the operator when there is none to be had.
 */
export async function connectedTo(settings: ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({ ...settings, types: { getTypeParser: parserOf } })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    // A name with several addresses fails once for each, and says nothing itself.
    const [cause] = error instanceof AggregateError ? (error.errors as unknown[]) : [error]
    throw new Error('Cannot reach the database', { cause })
  })
  return client
}

/** A connection on which a transaction failed is good for the next one, if it can be rolled back. */
async function giveBack(client: PoolClient, error: unknown): Promise<void> {
  if (troubleOf(error) !== 'away') {
    try {
      await client.query('ROLLBACK')
      client.release()
      return
    } catch {
      // It is not, then.
    }
  }
  client.release(true)
}

/** Whether the connection was lost, rather than never made. */
export function isBroken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EPIPE' || code === 'ECONNRESET' || code === '57P01') return true
  return isUnsent(error) || error.message.startsWith('Connection terminated unexpectedly')
}

/** Whether the connection was known to be lost before the statement was sent on it: then nobody has heard of that. */
export function isUnsent(error: unknown): boolean {
  // pg says so with no code.
  return error instanceof Error && error.message.endsWith('connection error and is not queryable')
}

function unavailable(cause: unknown): ServiceError {
  return new ServiceError('store_unavailable', undefined, { cause })
}

function poolOf(bounds: ClientConfig, max: number): Pool {
  // It is waited for; only its type does not say so.
  const onConnect = findByKeys as (client: ClientBase) => void
  const pool = new pg.Pool({ ...bounds, max, idleTimeoutMillis: IDLE_MS_MAX, onConnect })
  // Whoever uses a connection that is lost learns of it anyway, and an idle one is replaced when one is needed;
  // without these listeners it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/**
 * Has the database find rows by their keys alone: there is one for every question. A statement with a name is planned once,
 * and a plan that reads a whole table, because that is small in a new vault, would go on for minutes in one that is filled. A database that
 * does not know the setting plans as it likes.
 */
async function findByKeys(client: ClientBase): Promise<void> {
  try {
    await client.query('SET enable_seqscan = off')
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.severity === 'FATAL') throw error
  }
}

/** Returns `settings` with the bounds that every connection has. */
export function bounded(settings: ClientConfig, deadlineFactor = 1): ClientConfig {
  return {
    ...settings,
    types: { getTypeParser: parserOf },
    connectionTimeoutMillis: CONNECT_MS_MAX * deadlineFactor,
    statement_timeout: STATEMENT_MS_MAX * deadlineFactor,
    lock_timeout: LOCK_MS_MAX * deadlineFactor,
    query_timeout: ANSWER_MS_MAX * deadlineFactor,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS_MAX * deadlineFactor,
    keepAlive: true,
  }
}

/** Type numbers of PostgreSQL's own types. Source: its catalogue pg_type. */
const TYPE = { bytea: 17, bigint: 20 } as const

function parserOf(type: number, format?: 'text' | 'binary'): (value: never) => unknown {
  if (type === TYPE.bytea) return bytesOf
  if (type === TYPE.bigint) return Number
  return pg.types.getTypeParser(type, format)
}

/** `\x`, and two digits for each byte. */
function bytesOf(text: string): Uint8Array {
  const { buffer, byteOffset, length } = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(buffer, byteOffset, length)
}

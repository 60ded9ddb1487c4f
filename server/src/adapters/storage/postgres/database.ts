import pg, { type ClientBase, type Pool, type PoolClient, type QueryConfig } from 'pg'
import { ServiceError } from '../../../base/service-error.ts'
import { bounded } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { ConnectError, PrimaryClient, StandbyError } from './primary-client.ts'
import { areNamesTracked, requireSettings } from './requirements.ts'
import type { PostgresRow } from './rows.ts'
import type { ServerList } from './server-list.ts'
import { queryOf, Session, troubleOf, type AskPostgres, type CommitLevel } from './session.ts'
import { requiredSettings, type SessionTimeouts } from './session-settings.ts'

/** Pool sizes. Writers: two batches in flight, one long commit, one for everything else. */
const READERS_MAX = 8
const WRITERS_MAX = 4

/** Connections that one server opens at most. */
export const CONNECTIONS_MAX = READERS_MAX + WRITERS_MAX

const IDLE_MS_MAX = 60_000

/**
 * Age of a pooled connection at which it is replaced, in seconds. Bounds how long a former primary stays in use behind a name
 * that leads elsewhere now, and how long a former password does; 24 new connections a minute cost little. Ours.
 */
export const AGE_SECONDS_MAX = 30

/** Reads waiting for a connection, each no longer than for a new one; beyond this, reads are rejected at once. */
const WAITING_MAX = 2_000

const NAMES_UNTRACKED =
  'Cannot use the database: a pooler in transaction mode does not track prepared statements; set max_prepared_statements = 100 ' +
  '(PgBouncer 1.21 or later) or pool_mode = session, or connect without it'

/** Attempts at a transaction that loses to a concurrent one. */
export const TRIES_MAX = 5

/**
 * The connection pools. Lost connections are replaced. Each leads to the primary: no result is used of a server that says it
 * is a standby.
 *
 * Nothing here waits for long: while the database refuses connections, every call fails at once.
 */
export class Database {
  readonly #servers: ServerList
  readonly #commitLevel: CommitLevel
  readonly #readers: Pool
  readonly #writers: Pool
  readonly #timeouts: SessionTimeouts

  /** `deadlineFactor` multiplies the timeouts of every connection. */
  constructor(settings: ConnectionSettings, commitLevel: CommitLevel, deadlineFactor = 1) {
    this.#commitLevel = commitLevel
    this.#servers = settings.servers
    const bounds = bounded(settings, deadlineFactor)
    this.#timeouts = bounds.timeouts
    this.#readers = poolOf(bounds, READERS_MAX)
    this.#writers = poolOf(bounds, WRITERS_MAX)
  }

  /**
   * Rejects with a message for the operator unless reads and writes have our timeouts and other settings, and named statements
   * work on whatever connection.
   */
  async requireSettings(): Promise<void> {
    const settings = requiredSettings(this.#timeouts)
    await requireSettings(this.ask, settings)
    await this.write(async (session) => {
      await session.begin()
      await requireSettings(session.ask, settings)
      await session.rollback()
    })
    await this.#requireNames()
  }

  async #requireNames(): Promise<void> {
    const clients: PooledClient[] = []
    const connected = async (): Promise<PooledClient> => {
      const client = await this.#connected(() => connectionOf(this.#readers))
      clients.push(client)
      return client
    }
    try {
      const tracked = await areNamesTracked([
        await connected(),
        await connected(),
        await connected(),
      ])
      if (!tracked) throw new Error(NAMES_UNTRACKED)
      for (const it of clients.splice(0)) it.release()
    } finally {
      for (const it of clients) it.release(true)
    }
  }

  /** Runs one reading statement. Rejects with `store_unavailable` when the database does not answer. */
  readonly ask: AskPostgres = async (sql, values = []) => {
    if (this.#readers.waitingCount >= WAITING_MAX)
      throw unavailable(new Error('Too many reads wait'))
    for (let tries = 1; ; tries++) {
      try {
        return await this.#read(queryOf(sql, values))
      } catch (error) {
        const trouble = troubleOf(error)
        if (trouble === 'own') throw error
        // Using a connection is the only way to find out that the database has closed it.
        const stale = trouble === 'away' && isBroken(error) && tries <= READERS_MAX
        if (!(trouble === 'again' && tries < TRIES_MAX) && !stale) throw unavailable(error)
      }
    }
  }

  async #read(query: QueryConfig): Promise<PostgresRow[]> {
    const client = await this.#connected(() => connectionOf(this.#readers))
    try {
      const { rows } = await client.runAlone(query, 'READ COMMITTED READ ONLY')
      client.release()
      return rows
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  /** Calls `work` with a connection. When `work` rejects, rolls back, or discards the connection if it is unusable. */
  async write<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    const client = await this.#connected(() => connectionOf(this.#writers))
    try {
      const result = await work(new Session(client, this.#commitLevel))
      client.release()
      return result
    } catch (error) {
      await giveBack(client, error)
      throw error
    }
  }

  /**
   * Like write(), for work that does no harm if done twice: does it again, over another connection, if the first was lost. Using
   * a connection is the only way to find out.
   */
  async writeRepeatable<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.write(work)
      } catch (error) {
        if (!isBroken(error) || tries > WRITERS_MAX) throw error
      }
    }
  }

  /** Calls `attempt` again while no connection is made, as often as there are servers to try. */
  async #connected<Result>(attempt: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof ConnectError) || tries >= this.#servers.all.length) throw error
      }
    }
  }

  /** Closes all connections once they are free. */
  async close(): Promise<void> {
    await Promise.all([this.#readers.end(), this.#writers.end()])
  }
}

/** Returns a connection to the pool after a failed transaction: rolled back if possible, discarded otherwise. */
async function giveBack(client: PooledClient, error: unknown): Promise<void> {
  if (troubleOf(error) !== 'away') {
    try {
      await client.query('ROLLBACK')
      client.release()
      return
    } catch {
      // The connection cannot be reused.
    }
  }
  client.release(true)
}

/** Whether the connection was lost, rather than never made. */
export function isBroken(error: unknown): boolean {
  if (error instanceof StandbyError) return true
  if (error instanceof ConnectError) {
    return !(error.reason instanceof StandbyError) && isBroken(error.reason)
  }
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EPIPE' || code === 'ECONNRESET' || code === '57P01') return true
  return isUnsent(error) || error.message.startsWith('Connection terminated unexpectedly')
}

/** Whether the connection was known to be lost before the statement was sent, so the database never saw it. */
export function isUnsent(error: unknown): boolean {
  // pg reports this without an error code.
  return error instanceof Error && error.message.endsWith('connection error and is not queryable')
}

function unavailable(cause: unknown): ServiceError {
  return new ServiceError('store_unavailable', undefined, { cause })
}

/** A connection of a pool. */
type PooledClient = PrimaryClient & Pick<PoolClient, 'release'>

async function connectionOf(pool: Pool): Promise<PooledClient> {
  // The pool makes them by our class, although its type does not say so.
  return (await pool.connect()) as unknown as PooledClient
}

function poolOf(bounds: ConnectionSettings, max: number): Pool {
  const pool = new pg.Pool({
    ...bounds,
    max,
    idleTimeoutMillis: IDLE_MS_MAX,
    maxLifetimeSeconds: AGE_SECONDS_MAX,
    Client: PrimaryClient as unknown as new () => ClientBase,
  })
  // The pool replaces lost connections on demand; without this listener their errors would end the process.
  pool.on('error', () => {})
  return pool
}

import pg, { type QueryConfig, type QueryResult } from 'pg'
import { allOf } from './all-of.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { passwordFor } from './password-file.ts'
import type { PostgresRow } from './rows.ts'
import type { DatabaseServer, ServerList } from './server-list.ts'
import {
  FIRST_STATEMENT_MS_MAX,
  localSettings,
  NO_TIMEOUTS,
  sessionSettings,
  SETTLE,
  type SessionSettings,
  type TransactionMode,
} from './session-settings.ts'

/** The server answers as a standby: what it returns may be older than what was acknowledged. */
export class StandbyError extends Error {
  constructor() {
    super('the server is a standby')
  }
}

/** A connection that was never made: the server could not be reached, refused it, or is a standby. */
export class ConnectError extends Error {
  /** Repeated in the message: as `cause`, it would be printed twice. */
  readonly reason: unknown

  constructor(server: string, reason: unknown) {
    super(`${server}: ${textOf(reason)}`)
    this.reason = reason
  }
}

/**
 * A connection to a primary, attempted at the preferred server. Connecting rejects, before any other statement is sent, when
 * the server is a standby; then, as after any failed attempt, another server is preferred.
 *
 * PostgreSQL reports `in_hot_standby` when a session starts and whenever it changes. When the report turns on later, statements
 * in flight reject, whatever has arrived of their results, and the connection is closed. A pooler reports what another session
 * did, and an old server nothing, so each is asked as well, once; and where the session is not ours, each transaction asks.
 *
 * Every statement runs with our settings (session-settings.ts). A session of our own has them; in any other, each transaction
 * begins with them. Statements are pipelined: sent without waiting for earlier answers.
 *
 * Rejects with a ConnectError. Its loss is noticed only when it is used.
 */
export class PrimaryClient extends pg.Client {
  readonly server: DatabaseServer
  readonly #servers: ServerList
  #settings: SessionSettings
  #ownSession = false

  /** The timeout for a new connection is shared by attempts at all servers. */
  constructor({
    servers,
    connectionTimeoutMillis,
    timeouts = NO_TIMEOUTS,
    password,
    passwordFile,
    ...settings
  }: ConnectionSettings) {
    const { preferred, all } = servers
    const connectionTimeout = (connectionTimeoutMillis ?? 0) / all.length
    super({
      ...settings,
      ...preferred,
      // By name: a pool makes it non-enumerable, so that a spread leaves it out.
      ...(password === undefined ? {} : { password }),
      connectionTimeoutMillis: connectionTimeout,
      pipeline: true,
      statement_timeout: FIRST_STATEMENT_MS_MAX,
    })
    this.server = preferred
    this.#servers = servers
    this.#settings = sessionSettings(timeouts)
    // Neither the address nor PGPASSWORD has one. Read only if the server asks, and by every connection: it may change.
    if ((this.password ?? null) === null) {
      Object.assign(this, { password: () => this.#passwordFrom(passwordFile) })
    }
    // Statements report a lost connection; without a listener the error would end the process.
    this.on('error', () => {})
    this.connection.on('parameterStatus', (it: ParameterStatus) => this.#heed(it))
  }

  /** Whether the session is ours for as long as the connection lasts, and has our settings. */
  get ownSession(): boolean {
    return this.#ownSession
  }

  /**
   * Begins a transaction, with one request: evaluates `expressions`, which may set what holds until its end, and applies our
   * settings. Rejects with a StandbyError if a pooler gave it a session of a standby; what was sent after it must not be used then.
   */
  async begin(mode: TransactionMode, expressions: readonly string[] = []): Promise<void> {
    const begin = `BEGIN ISOLATION LEVEL ${mode}`
    const all = this.#ownSession ? expressions : [...expressions, ...this.#forSharedSession()]
    const sql = all.length === 0 ? begin : `${begin}; SELECT ${all.join(', ')}`
    const result: unknown = await this.query(sql)
    const [, selected] = Array.isArray(result) ? (result as QueryResult<PostgresRow>[]) : []
    if (selected?.rows[0]?.standby === true) throw new StandbyError()
  }

  /** Returns the expressions for a transaction whose session may be another than before, perhaps of another server. */
  #forSharedSession(): string[] {
    return ['pg_is_in_recovery() AS standby', ...localSettings(this.#settings)]
  }

  /** Runs one statement outside any transaction: in one of its own only if the session is not ours. */
  async runAlone(query: QueryConfig, mode: TransactionMode): Promise<QueryResult<PostgresRow>> {
    if (this.#ownSession) return await this.query<PostgresRow>(query)
    return await this.runWithin(query, mode)
  }

  /** Runs one statement in a transaction of its own, in one round trip. */
  async runWithin(query: QueryConfig, mode: TransactionMode): Promise<QueryResult<PostgresRow>> {
    const [, result] = await allOf([
      this.begin(mode),
      this.query<PostgresRow>(query),
      this.query('COMMIT'),
    ])
    return result
  }

  override connect(): Promise<pg.Client>
  override connect(callback: Connected): void
  override connect(callback?: Connected): unknown {
    const connected = this.#connect()
    if (callback === undefined) return connected
    const settle = callback as (error: Error | null, it?: pg.Client) => void
    connected.then(
      () => settle(null, this),
      (error: unknown) => settle(error as Error),
    )
    return undefined
  }

  async #connect(): Promise<pg.Client> {
    try {
      // The promise settles once, although pg would go on after a refused report.
      await super.connect()
      await this.#settle()
      return this
    } catch (error) {
      this.connection.stream.destroy()
      this.#servers.moveOn(this.server)
      throw new ConnectError(`${this.host}:${this.port}`, error)
    }
  }

  async #passwordFrom(file: string | undefined): Promise<string> {
    const { host, port, database = '', user = '' } = this
    return await passwordFor({ host, port, database, user }, file)
  }

  async #settle(): Promise<void> {
    const [names, values] = [Object.keys(this.#settings), Object.values(this.#settings)]
    const { rows } = await this.query<Settled>(SETTLE, [names, values])
    if (rows.some((it) => it.standby)) throw new StandbyError()
    this.#settings = Object.fromEntries(rows.map(({ name }) => [name, this.#settings[name]!]))
    this.#ownSession = rows.length > 0 && rows.every((it) => it.applied)
  }

  #heed({ parameterName, parameterValue }: ParameterStatus): void {
    if (parameterName !== 'in_hot_standby') return
    if (parameterValue !== 'on') return
    // As if the socket had failed: rejects every statement that was sent or is queued.
    this.connection.emit('error', new StandbyError())
    this.connection.stream.destroy()
  }
}

/** As pg declares it. */
type Connected = ((error: Error) => void) | ((error: null, it: pg.Client) => void)

/** A setting that the database knows. */
interface Settled {
  readonly name: string
  readonly applied: boolean
  /** Of the server. */
  readonly standby: boolean
}

/** A message of the protocol, which pg passes on and does not declare. */
interface ParameterStatus {
  readonly parameterName: string
  readonly parameterValue: string
}

function textOf(reason: unknown): string {
  // A name with several addresses yields an AggregateError with no message of its own.
  const [error] = reason instanceof AggregateError ? (reason.errors as unknown[]) : [reason]
  return error instanceof Error ? error.message : String(error)
}

import pg from 'pg'
import type { ConnectionSettings } from './connection-settings.ts'
import type { DatabaseServer, ServerList } from './server-list.ts'

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
 * PostgreSQL reports `in_hot_standby` when a session starts and whenever it changes; a server older than version 14, or
 * behind most poolers, reports nothing and is asked once. When the report turns on later, statements in flight reject,
 * whatever has arrived of their results, and the connection is closed.
 *
 * Rejects with a ConnectError. Its loss is noticed only when it is used.
 */
export class PrimaryClient extends pg.Client {
  readonly server: DatabaseServer
  readonly #servers: ServerList
  /** As last reported or asked; null until then. */
  #standby: boolean | null = null

  /** The timeout for a new connection is shared by attempts at all servers. */
  constructor({ servers, connectionTimeoutMillis, ...settings }: ConnectionSettings) {
    const { preferred, all } = servers
    const connectionTimeout = (connectionTimeoutMillis ?? 0) / all.length
    super({ ...settings, ...preferred, connectionTimeoutMillis: connectionTimeout })
    this.server = preferred
    this.#servers = servers
    // Statements report a lost connection; without a listener the error would end the process.
    this.on('error', () => {})
    this.connection.on('parameterStatus', (it: ParameterStatus) => this.#heed(it))
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
      if (this.#standby === null) await this.#ask()
      return this
    } catch (error) {
      this.connection.stream.destroy()
      this.#servers.moveOn(this.server)
      throw new ConnectError(`${this.host}:${this.port}`, error)
    }
  }

  async #ask(): Promise<void> {
    const { rows } = await this.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby')
    this.#standby = rows[0]!.standby
    if (this.#standby) throw new StandbyError()
  }

  #heed({ parameterName, parameterValue }: ParameterStatus): void {
    if (parameterName !== 'in_hot_standby') return
    this.#standby = parameterValue === 'on'
    if (!this.#standby) return
    // As if the socket had failed: rejects every statement that was sent or is queued.
    this.connection.emit('error', new StandbyError())
    this.connection.stream.destroy()
  }
}

/** As pg declares it. */
type Connected = ((error: Error) => void) | ((error: null, it: pg.Client) => void)

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

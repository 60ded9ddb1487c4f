import pg from 'pg'
import type { ConnectionSettings } from './connection-settings.ts'
import { ConnectError, PrimaryClient } from './primary-client.ts'
import { Session } from './session.ts'
import type { SessionTimeouts } from './session-settings.ts'

/** Timeout for a new connection, in milliseconds. */
const CONNECT_MS_MAX = 4_000

/** Timeout for the first connection, at start. */
const START_MS_MAX = 20_000

/** Timeout for one statement, enforced by the database and, a little later, by us. */
export const STATEMENT_MS_MAX = 4_000
const ANSWER_MS_MAX = 4_500

/** Timeout for a lock held by another transaction, such as a tenant's chain tip. */
const LOCK_MS_MAX = 3_000

/** How long a transaction may idle before the database ends the connection, because its locks block others. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000

/**
 * Calls `work` with a connection of its own and no timeouts, whatever the role has, for work before anyone is
 * served, such as migrations or moving a vault.
 */
export async function atLeisure<Result>(
  settings: ConnectionSettings,
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
 * Returns a new connection to the primary, after an attempt at each server if need be. Rejects with a message for the
 * operator when none is.
 */
export async function connectedTo(settings: ConnectionSettings): Promise<PrimaryClient> {
  const failures: ConnectError[] = []
  while (failures.length < settings.servers.all.length) {
    const client = new PrimaryClient({ ...settings, types: { getTypeParser: parserOf } })
    try {
      await client.connect()
      return client
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error
      failures.push(error)
    }
  }
  const all = failures.map((it) => it.message).join('; ')
  throw new Error('Cannot reach the database', {
    cause: failures.length === 1 ? failures[0] : new Error(all),
  })
}

/** Returns `settings` with the timeouts of every pooled connection. */
export function bounded(
  settings: ConnectionSettings,
  deadlineFactor = 1,
): ConnectionSettings & { readonly timeouts: SessionTimeouts } {
  return {
    ...settings,
    types: { getTypeParser: parserOf },
    connectionTimeoutMillis: CONNECT_MS_MAX * deadlineFactor,
    query_timeout: ANSWER_MS_MAX * deadlineFactor,
    timeouts: {
      statement: STATEMENT_MS_MAX * deadlineFactor,
      lock: LOCK_MS_MAX * deadlineFactor,
      idleInTransaction: IDLE_IN_TRANSACTION_MS_MAX * deadlineFactor,
    },
    keepAlive: true,
  }
}

/** Type numbers (OIDs). Source: PostgreSQL's catalogue pg_type. */
const TYPE = { bytea: 17, bigint: 20 } as const

function parserOf(type: number, format?: 'text' | 'binary'): (value: never) => unknown {
  if (type === TYPE.bytea) return bytesOf
  if (type === TYPE.bigint) return Number
  return pg.types.getTypeParser(type, format)
}

/** Parses bytea in hex format: `\x`, then two digits per byte. */
function bytesOf(text: string): Uint8Array {
  const { buffer, byteOffset, length } = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(buffer, byteOffset, length)
}

import pg, { type ClientConfig } from 'pg'
import { PrimaryClient } from './primary-client.ts'
import { Session } from './session.ts'

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
 * Calls `work` with a connection of its own and no statement timeout, for work before anyone is served, such as
 * migrations or moving a vault.
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

/** Returns a new connection to the primary. Rejects with a message for the operator when it cannot connect. */
export async function connectedTo(settings: ClientConfig): Promise<PrimaryClient> {
  const client = new PrimaryClient({ ...settings, types: { getTypeParser: parserOf } })
  await client.connect().catch((cause: unknown) => {
    throw new Error('Cannot reach the database', { cause })
  })
  return client
}

/** Returns `settings` with the timeouts of every pooled connection. */
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

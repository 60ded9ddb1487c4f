import type { Store } from '../../../ports/store.ts'
import { accessRowReader } from './access-rows.ts'
import { auditLogReader } from './audit-log-reader.ts'
import { connectionSettings, isHere, type ConnectionSettings } from './connection-settings.ts'
import { bounded, connectedTo } from './connection.ts'
import { CONNECTIONS_MAX } from './database.ts'
import { jobReader } from './job-reader.ts'
import { migrations, migrationText } from './migrate.ts'
import type { PrimaryClient } from './primary-client.ts'
import type { PostgresRow } from './rows.ts'
import { requiredSettings } from './session-settings.ts'
import { areNamesTracked, settingsUnheld } from './requirements.ts'
import { queryOf, type AskPostgres } from './session.ts'
import { tenantReader } from './tenant-reader.ts'

/** The properties of a database that decide whether it can be served from. */
export interface PostgresFacts {
  /** For example `18.4`. */
  readonly version: string
  /** For example 180004. */
  readonly versionNumber: number
  readonly user: string
  readonly database: string
  /** The schema that the tables are in; null if none of the search path exists. */
  readonly schema: string | null
  /** Settings that the service does not set, by name, with the values that apply to this user; without settings that the database does not know. */
  readonly settings: Readonly<Record<string, string>>
  readonly mayCreate: boolean
  /** Tables of the program that exist and that the user may not read and write. */
  readonly forbiddenTables: readonly string[]
  /** Connections that ordinary users may open in total, and connections open now. */
  readonly connectionsMax: number
  readonly connections: number
  /** Connection limits of the role and of the database; -1 for none. */
  readonly roleConnectionsMax: number
  readonly databaseConnectionsMax: number
  readonly timeMs: number
  /** Connections that one server opens at most. */
  readonly connectionsNeeded: number
  /** Whether the database is on another machine, and whether the connection to it is encrypted. */
  readonly remote: boolean
  readonly encrypted: boolean
  /** Whether the database keeps the session for the connection; a pooler that drops startup parameters may not. */
  readonly ownSession: boolean
  /** Settings that do not hold although they were set, with their values. */
  readonly settingsUnheld: readonly string[]
  /** Whether named statements work on every connection; with a pooler that shares sessions, they may not. */
  readonly namesTracked: boolean
  /** The isolation level of a transaction that began as the service's do. */
  readonly isolation: string
  /** Whether a move of a vault into the database is unfinished; false if the user may not read that. */
  readonly unfinishedMove: boolean
}

export interface PostgresInspection {
  readonly facts: PostgresFacts
  /** 0 for a database without tables, or whose version the user may not read. */
  readonly version: number
  readonly knownVersion: number
  /** Only for a database of this program's version. All reads see the same snapshot. */
  readonly readers: () => Pick<Store, 'tenants' | 'jobs' | 'auditLog' | 'accessRows'>
  readonly close: () => Promise<void>
}

/** Opens the database at `url` in a read-only transaction. Rejects with a message for the operator. */
export async function openPostgresInspection(url: string): Promise<PostgresInspection> {
  const settings = connectionSettings(url)
  const bounds = bounded(settings)
  // The checks between two queries may take longer than this timeout of the service.
  const timeouts = { ...bounds.timeouts, idleInTransaction: 0 }
  const client = await connectedTo({ ...bounds, timeouts })
  const begin = async (): Promise<void> => {
    await client.begin('REPEATABLE READ READ ONLY')
  }
  const ask: AskPostgres = async (text, values = []) => {
    try {
      return (await client.query<PostgresRow>(queryOf(text, values))).rows
    } catch (error) {
      // Otherwise one failed query would fail every later one.
      await client.query('ROLLBACK').then(begin, () => {})
      throw error
    }
  }
  try {
    const alone: AskPostgres = async (text, values = []) =>
      (await client.runAlone(queryOf(text, values), 'READ COMMITTED READ ONLY')).rows
    const unheld = await settingsUnheld(alone, requiredSettings(timeouts))
    const isolation = await client.runWithin(ISOLATION, 'READ COMMITTED READ WRITE')
    const namesTracked = client.ownSession || (await tracksNames(bounds))
    await begin()
    const { host, ssl } = client.server
    const facts = await factsOf(ask, {
      remote: !isHere(host),
      encrypted: ssl !== false,
      ownSession: client.ownSession,
      isolation: String(isolation.rows[0]!.transaction_isolation),
      settingsUnheld: unheld,
      namesTracked,
    })
    return {
      facts,
      version: await versionOf(ask),
      knownVersion: migrations().length,
      readers: () => ({
        tenants: tenantReader(ask),
        jobs: jobReader(ask),
        auditLog: auditLogReader(ask),
        accessRows: accessRowReader(ask),
      }),
      close: () => client.end(),
    }
  } catch (error) {
    await client.end()
    throw error
  }
}

async function tracksNames(settings: ConnectionSettings): Promise<boolean> {
  const clients: PrimaryClient[] = []
  const connected = async (): Promise<PrimaryClient> => {
    const client = await connectedTo(settings)
    clients.push(client)
    return client
  }
  try {
    return await areNamesTracked([await connected(), await connected(), await connected()])
  } finally {
    for (const it of clients) await it.end()
  }
}

async function factsOf(
  ask: AskPostgres,
  connection: Pick<
    PostgresFacts,
    'remote' | 'encrypted' | 'ownSession' | 'isolation' | 'settingsUnheld' | 'namesTracked'
  >,
): Promise<PostgresFacts> {
  const [it] = await ask(FACTS)
  const [tables] = await ask(FORBIDDEN_TABLES, [ownTables()])
  return {
    version: String(it!.version).split(' ')[0]!,
    versionNumber: Number(it!.version_number),
    user: String(it!.user_name),
    database: String(it!.database_name),
    schema: it!.schema_name === null ? null : String(it!.schema_name),
    settings: JSON.parse(String(it!.settings)) as Record<string, string>,
    mayCreate: it!.may_create === true,
    forbiddenTables: JSON.parse(String(tables!.names)) as string[],
    connectionsMax: Number(it!.connections_max),
    connections: Number(it!.connections),
    roleConnectionsMax: Number(it!.role_connections_max),
    databaseConnectionsMax: Number(it!.database_connections_max),
    timeMs: Number(it!.time_ms),
    connectionsNeeded: CONNECTIONS_MAX,
    unfinishedMove: await isMoveUnfinished(ask),
    ...connection,
  }
}

const ISOLATION = { text: 'SHOW transaction_isolation' }

/** The time is the database's, not the transaction's. `reserved_connections` is a setting since PostgreSQL 16. */
const FACTS = `SELECT current_setting('server_version') AS version,
    current_setting('server_version_num') AS version_number,
    current_user AS user_name, current_database() AS database_name, current_schema() AS schema_name,
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
    floor(extract(epoch FROM clock_timestamp()) * 1000) AS time_ms,
    (SELECT json_object_agg(name, current_setting(name, true))::text FROM unnest(ARRAY[
      'synchronous_commit', 'fsync', 'full_page_writes', 'server_encoding', 'autovacuum']) AS it (name) WHERE current_setting(name, true) IS NOT NULL) AS settings,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0) AS connections_max,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS role_connections_max,
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS database_connections_max`

/** Other tables of the schema, such as those of an extension, are none of our business. */
const FORBIDDEN_TABLES = `SELECT coalesce(json_agg(tablename ORDER BY tablename), '[]')::text AS names FROM pg_tables
  WHERE schemaname = current_schema() AND tablename = ANY($1::text[]) AND NOT (
    has_table_privilege(format('%I.%I', schemaname, tablename), 'SELECT') AND
    has_table_privilege(format('%I.%I', schemaname, tablename), 'INSERT') AND
    has_table_privilege(format('%I.%I', schemaname, tablename), 'UPDATE') AND
    has_table_privilege(format('%I.%I', schemaname, tablename), 'DELETE'))`

async function versionOf(ask: AskPostgres): Promise<number> {
  if (!(await isReadable(ask, 'schema_version'))) return 0
  const [row] = await ask('SELECT version FROM schema_version')
  return Number(row?.version ?? 0)
}

/** Whether a move into the database is unfinished. Databases of old versions lack the table. */
async function isMoveUnfinished(ask: AskPostgres): Promise<boolean> {
  if (!(await isReadable(ask, 'moving'))) return false
  return (await ask('SELECT 1 FROM moving WHERE NOT finished')).length > 0
}

/** Whether the table exists, and the user may read it. */
async function isReadable(ask: AskPostgres, table: string): Promise<boolean> {
  const [it] = await ask("SELECT has_table_privilege(to_regclass($1), 'SELECT') AS readable", [
    table,
  ])
  return it!.readable === true
}

/** Returns the tables that this program has ever created. */
function ownTables(): string[] {
  const created = migrations().flatMap((it) => [
    ...migrationText(it).matchAll(/^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/gm),
  ])
  return ['schema_version', ...created.map(([, name]) => name!)]
}

import { readdirSync, readFileSync } from 'node:fs'
import { refuseNewerSchema, requireSchema } from '../../../ports/schema-version.ts'
import type { AskPostgres, Session } from './session.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** Advisory lock that serializes starting servers: the first letters of the program's name, as a number. */
const LOCK = 0x73796d62

/**
 * Migrates the database to this program's version, atomically, and excludes other servers meanwhile.
 *
 * Throws when the database is newer than the program: an old program could corrupt it.
 */
export async function migrate(session: Session): Promise<void> {
  const steps = migrations()
  await session.begin()
  await session.run('SELECT pg_advisory_xact_lock($1)', [LOCK])
  // Databases that only speak PostgreSQL's language may not honor the advisory lock; this row lock works there.
  await session.run(
    'CREATE TABLE IF NOT EXISTS schema_version (one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL)',
  )
  await session.run('INSERT INTO schema_version VALUES (1, 0) ON CONFLICT DO NOTHING')
  const version = await versionOf(session)
  refuseNewerSchema(version, steps.length)
  for (const name of steps.slice(version)) {
    await session.run(migrationText(name))
  }
  await session.run('UPDATE schema_version SET version = $1 WHERE version <> $1', [steps.length])
  await session.commit()
}

/** Rejects unless the database is at this program's version. For callers that must not migrate it. */
export async function requireCurrentSchema(ask: AskPostgres): Promise<void> {
  const [table] = await ask("SELECT to_regclass('schema_version') IS NOT NULL AS there")
  if (table!.there !== true) {
    throw new Error('Cannot read the database: nothing is set up in it; start the service once')
  }
  const [row] = await ask('SELECT version FROM schema_version')
  requireSchema(Number(row?.version ?? 0), migrations().length)
}

/** Returns the names of the migrations, in their order. */
export function migrations(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort()
}

export function migrationText(name: string): string {
  return readFileSync(new URL(name, FOLDER), 'utf8')
}

/** Returns every column, key and index of the database, for comparison with schema.sql. */
export async function schemaOf(session: Session): Promise<string> {
  const columns = await session.ask(
    `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
     WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
  )
  const keys = await session.ask(
    `SELECT relname AS table_name, pg_get_constraintdef(it.oid) AS definition
     FROM pg_constraint AS it JOIN pg_class ON pg_class.oid = conrelid
     WHERE it.connamespace = current_schema()::regnamespace AND contype IN ('p', 'u', 'c')
     ORDER BY relname, contype, conname`,
  )
  const indexes = await session.ask(
    `SELECT tablename AS table_name, indexdef FROM pg_indexes WHERE schemaname = current_schema()
       AND indexname NOT IN (SELECT conname FROM pg_constraint)
     ORDER BY tablename, indexname`,
  )
  const tables = [...new Set(columns.map((it) => String(it.table_name)))]
  const texts = tables.map((table) => {
    const own = columns.filter((it) => it.table_name === table)
    const lines = [
      ...own.map(({ column_name: name, data_type: type, is_nullable: nullable }) => {
        return `  ${String(name)} ${String(type)}${nullable === 'NO' ? ' NOT NULL' : ''}`
      }),
      ...keys.filter((it) => it.table_name === table).map((it) => `  ${String(it.definition)}`),
    ]
    const beside = indexes
      .filter((it) => it.table_name === table)
      .map((it) => `${String(it.indexdef).replace(/ ON \w+\./, ' ON ')};\n`)
    return `CREATE TABLE ${table} (\n${lines.join(',\n')}\n);\n${beside.join('')}`
  })
  return [`-- Version ${await versionOf(session)}\n`, ...texts].join('\n')
}

async function versionOf(session: Session): Promise<number> {
  const [row] = await session.ask('SELECT version FROM schema_version FOR UPDATE')
  return Number(row!.version)
}

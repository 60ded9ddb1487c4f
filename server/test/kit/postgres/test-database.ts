/** Databases for tests: a cluster that all files of a run share, and databases of their own in it. */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'
import { CLUSTER_VARIABLE, startCluster } from './cluster.ts'

let cluster: Promise<string> | null = null
/** What is to be done when the file's tests are over. */
const endings: (() => Promise<unknown>)[] = []

after(async () => {
  for (const it of endings.toReversed()) await it()
})

/** Does it when the file's tests are over, before what was to be done then already. */
export function atTheEnd(work: () => Promise<unknown>): void {
  endings.push(work)
}

/** Returns the address of a server to make databases in: the one of the run, or one for this file alone. */
export function clusterUrl(): Promise<string> {
  return (cluster ??= findCluster())
}

async function findCluster(): Promise<string> {
  const given = process.env[CLUSTER_VARIABLE]
  if (given !== undefined && given !== '') return given
  const { url, stop } = await startCluster()
  atTheEnd(stop)
  return url
}

/** Returns the address of a new database with nothing in it; it is dropped after the tests of the file. */
export async function freshDatabase(): Promise<string> {
  const url = await clusterUrl()
  // Numbers of processes come again, and a run that was killed leaves its databases on a server that is not its own.
  const name = `symbolon_${randomBytes(8).toString('hex')}`
  await query(url, `CREATE DATABASE ${name} STRATEGY = FILE_COPY`)
  atTheEnd(() => query(url, `DROP DATABASE ${name} WITH (FORCE)`))
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

/**
 * Removes every row of the program's tables, but for those that a new database has.
 *
 * Row by row: of a test there are few, and to truncate as many tables takes several times as long.
 */
export async function emptyDatabase(url: string): Promise<void> {
  await query(
    url,
    `DO $$ BEGIN EXECUTE (
       SELECT string_agg(format('DELETE FROM %I', tablename), '; ') FROM pg_tables
       WHERE schemaname = 'public' AND tablename NOT IN ('pulse', 'schema_version')
     ); END $$`,
  )
}

/** Runs SQL as whoever keeps the server, past the store. */
export async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}

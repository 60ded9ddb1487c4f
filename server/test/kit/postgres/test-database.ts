/** Databases for tests: a cluster shared by all files of a run, and separate databases in it. */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import { CLUSTER_VARIABLE, startCluster } from './cluster.ts'
import { query } from './query.ts'

export { query } from './query.ts'

let cluster: Promise<string> | null = null
/** The cleanups to run after the file's tests. */
const endings: (() => Promise<unknown>)[] = []

after(async () => {
  for (const it of endings.toReversed()) await it()
})

/** Registers a cleanup to run after the file's tests, before those registered earlier. */
export function atTheEnd(work: () => Promise<unknown>): void {
  endings.push(work)
}

/** Returns the address of the server to create databases in: the run's, or one for this file alone. */
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

/**
 * Returns the address of a new database, which is dropped after the tests of the file: empty, or a copy of the one at
 * `original`, which must have no connections.
 */
export async function freshDatabase(original?: string): Promise<string> {
  const url = await clusterUrl()
  // Process ids repeat, and a killed run leaves its databases on an external server.
  const name = `symbolon_${randomBytes(8).toString('hex')}`
  const template = original === undefined ? '' : `TEMPLATE ${new URL(original).pathname.slice(1)}`
  await query(url, `CREATE DATABASE ${name} ${template} STRATEGY = FILE_COPY`)
  atTheEnd(() => query(url, `DROP DATABASE ${name} WITH (FORCE)`))
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

/**
 * Deletes every row of the program's tables, except those of a new database.
 *
 * Row by row: a test has few, and truncating that many tables takes several times as long.
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

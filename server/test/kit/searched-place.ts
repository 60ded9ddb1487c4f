/** The storage of a vault, which can be searched for everything the vault left there: in files, and in the rows of a database. */
import { join } from 'node:path'
import pg from 'pg'
import { findTrace, findTracesInFiles, type Trace } from './canary.ts'
import { startCluster, type Cluster } from './postgres/cluster.ts'

export type PlaceName = 'sqlite' | 'postgres'

export interface SearchedPlace {
  /** Settings for a service that stores its data there. */
  readonly settings: Readonly<Record<string, string>>
  /** Resolves with everything that contains one of the traces, each with its encoding. */
  readonly find: (traces: readonly Trace[]) => Promise<string[]>
  readonly close: () => Promise<void>
}

/** Opens storage in `folder`, where other files to be searched may lie as well. */
export async function openPlace(name: PlaceName, folder: string): Promise<SearchedPlace> {
  const settings = { 'data-dir': join(folder, 'data') }
  const files = (traces: readonly Trace[]): string[] => findTracesInFiles(traces, folder)
  if (name === 'sqlite') {
    return { settings, find: async (traces) => files(traces), close: async () => {} }
  }
  const cluster = await startCluster({ settings: ['max_wal_size=64MB'] })
  return {
    settings: { ...settings, 'database-url': cluster.url },
    find: async (traces) => [
      ...files(traces),
      ...findTracesInFiles(traces, cluster.folder),
      ...(await findInRows(traces, cluster)),
    ],
    close: cluster.stop,
  }
}

/** Searches rows as text, with bytes in hex: long values may be compressed in the files. */
async function findInRows(traces: readonly Trace[], { url }: Cluster): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const found: string[] = []
    const tables = await client.query(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
    )
    await client.query('BEGIN')
    for (const { name } of tables.rows as { name: string }[]) {
      const form = await findInTable(traces, client, name)
      if (form !== null) found.push(`table ${name}: ${form}`)
    }
    return found
  } finally {
    await client.end()
  }
}

async function findInTable(
  traces: readonly Trace[],
  client: pg.Client,
  table: string,
): Promise<string | null> {
  await client.query(`DECLARE portion CURSOR FOR SELECT it::text AS row FROM "${table}" AS it`)
  for (;;) {
    const { rows } = await client.query('FETCH 5000 FROM portion')
    const form = findTrace(traces, Buffer.from(rows.map((it) => String(it.row)).join('\n')))
    if (form !== null || rows.length === 0) {
      await client.query('CLOSE portion')
      return form
    }
  }
}

/** A vault that was set up with `symbolon init` and never served: created once per file and store, and copied for each test. */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { atTheEnd, freshDatabase } from './postgres/test-database.ts'
import { runSymbolon, temporaryFolder } from './running-vault.ts'

export const STORES = ['SQLite', 'PostgreSQL'] as const

type StoreKind = (typeof STORES)[number]

export interface PreparedVault {
  /** The data folder, with the root key in it. */
  readonly folder: string
  /** The settings that name the folder and, on PostgreSQL, the database. */
  readonly where: Readonly<Record<string, string>>
  /** The only management key. */
  readonly key: string
  readonly tenantId: string
  readonly applicationId: string
}

const originals = new Map<StoreKind, Promise<PreparedVault>>()

/** Copies the vault; every copy has the same tenant, root key and management key. */
export async function preparedVault(
  t: Parameters<typeof temporaryFolder>[0],
  store: StoreKind = 'SQLite',
): Promise<PreparedVault> {
  if (!originals.has(store)) originals.set(store, setUp(store))
  const original = await originals.get(store)!
  const folder = temporaryFolder(t)
  cpSync(original.folder, folder, { recursive: true })
  const template = original.where['SYMBOLON_DATABASE_URL']
  return {
    ...original,
    folder,
    where: whereOf(folder, template && (await freshDatabase(template))),
  }
}

async function setUp(store: StoreKind): Promise<PreparedVault> {
  const folder = temporaryFolder({ after: (remove) => atTheEnd(async () => remove()) })
  const where = whereOf(folder, store === 'PostgreSQL' ? await freshDatabase() : undefined)
  const { out, err } = await runSymbolon(['init', '--json'], where)
  assert.equal(err, '')
  const { tenant_id, application_id, api_key } = JSON.parse(out) as Record<string, string>
  return { folder, where, key: api_key!, tenantId: tenant_id!, applicationId: application_id! }
}

function whereOf(folder: string, database: string | undefined): Record<string, string> {
  return {
    SYMBOLON_DATA_DIR: folder,
    ...(database !== undefined && { SYMBOLON_DATABASE_URL: database }),
  }
}

/** Returns every row of every table of a data folder's database. */
export function contentOf(folder: string): Record<string, unknown[]> {
  const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const content = Object.fromEntries(
    tables.map(({ name }) => [name, db.prepare(`SELECT * FROM "${String(name)}"`).all()]),
  )
  db.close()
  return content
}

/** Edits of a data folder by an attacker who can write to the database but has no key. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { eventsOfRow } from '../../src/adapters/sqlite/earlier-events.ts'

/** Deletes every event but the first, of every tenant, and the checkpoints. */
export function keepFirstEvent(folder: string): void {
  edit(folder, (db) => {
    for (const { tenant } of db.prepare('SELECT tenant FROM record_heads').all()) {
      const row = db.prepare('SELECT * FROM record WHERE tenant = ? ORDER BY number LIMIT 1')
      const [first] = eventsOfRow(row.get(tenant!)!)
      const { number, listed, hash, entry } = first!
      db.prepare('DELETE FROM record WHERE tenant = ?').run(tenant!)
      db.prepare(
        'INSERT INTO record (tenant, number, listed, entry, hash) VALUES (?, ?, ?, ?, ?)',
      ).run(tenant!, number, listed, entry, hash)
      db.prepare(
        `UPDATE record_heads SET number = ?, listed = ?, hash = ?, sealed_number = 0, seal = NULL
         WHERE tenant = ?`,
      ).run(number, listed, hash, tenant!)
    }
  })
}

/** Gives the database the version before checkpoints were required. Anyone who can write to it can. */
export function resetSchemaVersion(folder: string): void {
  edit(folder, (db) => db.exec('PRAGMA user_version = 14'))
}

/** Makes the database one of the version before checkpoints were required; for that the root key is needed. */
export async function downgrade(folder: string): Promise<void> {
  const rootKey = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: false })
  const known = Buffer.from('symbolon: this root key is right')
  const check = await rootKey.wrap(known, ['root key check'])
  edit(folder, (db) => db.prepare('UPDATE installation SET root_key_check = ?').run(check))
  resetSchemaVersion(folder)
}

export function edit(folder: string, change: (db: DatabaseSync) => unknown): void {
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  try {
    change(db)
  } finally {
    db.close()
  }
}

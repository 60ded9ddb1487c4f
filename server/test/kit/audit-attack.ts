/** Edits of a data folder by an attacker who can write to the database but has no key. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { eventsOfRow } from '../../src/adapters/sqlite/earlier-events.ts'
import type { AuditCheckpoint, ChainPosition } from '../../src/ports/audit-log.ts'
import { packCheckpoint } from '../../src/ports/packed-checkpoint.ts'

/** Deletes every event but the first, of every tenant, and the checkpoints. */
export function keepFirstEvent(folder: string): void {
  keepEvents(folder, 1, () => null)
}

/** Deletes every event after the first `count`, of every tenant, and stores the checkpoint that `checkpoint` returns. */
export function keepEvents(
  folder: string,
  count: number,
  checkpoint: (last: ChainPosition) => AuditCheckpoint | null,
): void {
  edit(folder, (db) => {
    for (const { tenant } of db.prepare('SELECT tenant FROM record_heads').all()) {
      const rows = db.prepare('SELECT * FROM record WHERE tenant = ? ORDER BY number').all(tenant!)
      const kept = rows.flatMap((it) => eventsOfRow(it)).slice(0, count)
      db.prepare('DELETE FROM record WHERE tenant = ?').run(tenant!)
      const insert = db.prepare(
        'INSERT INTO record (tenant, number, listed, entry, hash) VALUES (?, ?, ?, ?, ?)',
      )
      for (const it of kept) insert.run(tenant!, it.number, it.listed, it.entry, it.hash)
      const last = kept.at(-1)!
      const sealed = checkpoint(last)
      db.prepare(
        `UPDATE record_heads SET number = ?, listed = ?, hash = ?, sealed_number = ?, seal = ?
         WHERE tenant = ?`,
      ).run(
        last.number,
        last.listed,
        last.hash,
        sealed?.last.number ?? 0,
        sealed === null ? null : packCheckpoint(sealed),
        tenant!,
      )
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

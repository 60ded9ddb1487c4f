/** Edits of a data folder by an attacker who can write to the database but has no key. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { openSqliteAuditLog } from '../../src/adapters/storage/sqlite/audit-log-snapshot.ts'
import { eventsOfRow } from '../../src/adapters/storage/sqlite/earlier-events.ts'
import { packId } from '../../src/adapters/storage/sqlite/ids.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { isGenuine } from '../../src/audit/chain-flaws.ts'
import {
  checkpointStatement,
  type AuditCheckpoint,
  type ChainPosition,
} from '../../src/ports/audit-log.ts'
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
  edit(folder, (db) => {
    db.exec('ALTER TABLE record_heads DROP COLUMN access_revision')
    db.exec('ALTER TABLE record_heads DROP COLUMN access')
    db.exec('ALTER TABLE sessions DROP COLUMN proof')
    db.exec('ALTER TABLE applications DROP COLUMN allowed_origins')
    db.exec('PRAGMA user_version = 14')
  })
}

/** What the root key check of a version states. */
export const STATED = {
  'before checkpoints': ['root key check'],
  'before access states': ['root key check', 'every audit log has a checkpoint'],
} as const

/** Makes the database one of an older version, with checkpoints like its own if they are genuine; for that the root key is needed. */
export async function downgrade(
  folder: string,
  to: keyof typeof STATED = 'before checkpoints',
): Promise<void> {
  const rootKey = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: false })
  const known = Buffer.from('symbolon: this root key is right')
  const check = await rootKey.wrap(known, STATED[to])
  await renewCheckpoints(folder, rootKey)
  edit(folder, (db) => db.prepare('UPDATE installation SET root_key_check = ?').run(check))
  resetSchemaVersion(folder)
}

/** Leaves the access state out of the checkpoints. */
async function renewCheckpoints(folder: string, rootKey: FileKeyProvider): Promise<void> {
  const { tenants, auditLog, close } = openSqliteAuditLog(folder)
  const keyring = new LocalKeyring(rootKey, new SystemRandom(), (id) => tenants.keys(id))
  const renewed: [string, AuditCheckpoint][] = []
  for (const id of await tenants.ids()) {
    const keys = await keyring.open(id)
    const checkpoint = (await auditLog.state(id))?.checkpoint ?? null
    if (checkpoint === null || !isGenuine(keys, id, checkpoint)) continue
    const covered = { ...checkpoint, access: null }
    renewed.push([id, { ...covered, proof: keys.attest(checkpointStatement(id, covered)) }])
  }
  close()
  edit(folder, (db) => {
    const put = db.prepare('UPDATE record_heads SET seal = ? WHERE tenant = ?')
    for (const [id, checkpoint] of renewed) put.run(packCheckpoint(checkpoint), packId(id))
  })
}

export function edit(folder: string, change: (db: DatabaseSync) => unknown): void {
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  try {
    change(db)
  } finally {
    db.close()
  }
}

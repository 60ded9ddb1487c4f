/**
 * Measures SQLite alone: `node raw-insert.ts <milliseconds>` prints rows per second.
 *
 * One dedicated thread, a thousand rows per commit, the store's settings, one plain table. A
 * row is the size of a sealed card with a fingerprint: time-ordered id, tenant, type, maker and instant,
 * 32 bytes of fingerprint, 300 of ciphertext.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openConnection } from '../src/adapters/storage/sqlite/connection.ts'
import { SystemRandom } from '../src/adapters/system/system-random.ts'

const ROWS_A_COMMIT = 1000

const ms = Number(process.argv[2] ?? 2000)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-raw-'))
const db = openConnection(join(folder, 'raw.db'), { cacheKiB: 64 * 1024 })
db.exec(`CREATE TABLE rows (
  id BLOB PRIMARY KEY, tenant BLOB, type TEXT, created_by BLOB, created_at INTEGER,
  fingerprint BLOB, ciphertext BLOB
) WITHOUT ROWID`)
const insert = db.prepare('INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)')
const random = new SystemRandom()
const [tenant, application] = [random.bytes(16), random.bytes(16)]
const [fingerprint, ciphertext] = [random.bytes(32), random.bytes(300)]

let rows = 0
const begin = performance.now()
while (performance.now() - begin < ms) {
  db.exec('BEGIN IMMEDIATE')
  for (let n = 0; n < ROWS_A_COMMIT; n++) {
    const id = Buffer.alloc(16)
    id.writeUInt32BE(rows, 0)
    insert.run(id, tenant, 'card', application, 1_760_000_000_000, fingerprint, ciphertext)
    rows++
  }
  db.exec('COMMIT')
}
process.stdout.write(`${Math.round((rows / (performance.now() - begin)) * 1000)}\n`)
db.close()
rmSync(folder, { recursive: true })

/**
 * What SQLite alone can do: `node raw-insert.ts <milliseconds>` prints rows a second.
 *
 * The store's own table and settings and rows of the same size, a thousand a commit, one thread that does
 * nothing else.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openConnection } from '../src/adapters/sqlite/connection.ts'
import { migrate } from '../src/adapters/sqlite/migrate.ts'
import { SystemRandom } from '../src/adapters/system/system-random.ts'

const ROWS_A_COMMIT = 1000
/** Head, nonce, tag and a short text: what an array of strings makes of each. */
const ENVELOPE_BYTES = 1 + 4 + 12 + 16 + 18

const ms = Number(process.argv[2] ?? 2000)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-raw-'))
const db = openConnection(join(folder, 'raw.db'), { cacheKiB: 8 * 1024 })
migrate(db)
const insert = db.prepare(
  'INSERT INTO tokens (tenant, serial, type, containers, data, created_by, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
)
const random = new SystemRandom()
const tenant = random.bytes(16)
const application = random.bytes(16)
const envelope = random.bytes(ENVELOPE_BYTES)

let rows = 0
const begin = performance.now()
while (performance.now() - begin < ms) {
  db.exec('BEGIN IMMEDIATE')
  for (let n = 0; n < ROWS_A_COMMIT; n++) {
    const serial = Buffer.alloc(16)
    serial.writeUInt32BE(rows, 0)
    insert.run(tenant, serial, 'token', '/general/high/', envelope, application, 1_760_000_000_000)
    rows++
  }
  db.exec('COMMIT')
}
process.stdout.write(`${Math.round((rows / (performance.now() - begin)) * 1000)}\n`)
db.close()
rmSync(folder, { recursive: true })

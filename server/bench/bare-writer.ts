/** The thread of a recording proxy: told how many entries there are, it answers when they are on the disk. */
import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from '../src/adapters/sqlite/connection.ts'

/** What the vault's record says of a request that sends one token out. */
const ENTRY = new Uint8Array(200)

const port = parentPort!
const db = openConnection(workerData as string, { cacheKiB: 2 * 1024 })
db.exec('CREATE TABLE record (number INTEGER PRIMARY KEY, entry BLOB NOT NULL) STRICT')
const insert = db.prepare('INSERT INTO record (entry) VALUES (?)')

port.on('message', (entries: number) => {
  db.exec('BEGIN IMMEDIATE')
  for (let n = 0; n < entries; n++) insert.run(ENTRY)
  db.exec('COMMIT')
  port.postMessage(entries)
})

port.postMessage(0)

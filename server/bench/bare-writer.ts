/** Writer thread of a recording proxy: gets a number of events and answers once they are on disk. */
import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from '../src/adapters/storage/sqlite/connection.ts'

/** Size of the audit event for a request that sends out one token. */
const EVENT = new Uint8Array(200)

const port = parentPort!
const db = openConnection(workerData as string, { cacheKiB: 2 * 1024 })
db.exec('CREATE TABLE record (number INTEGER PRIMARY KEY, entry BLOB NOT NULL) STRICT')
const insert = db.prepare('INSERT INTO record (entry) VALUES (?)')

port.on('message', (events: number) => {
  db.exec('BEGIN IMMEDIATE')
  for (let n = 0; n < events; n++) insert.run(EVENT)
  db.exec('COMMIT')
  port.postMessage(events)
})

port.postMessage(0)

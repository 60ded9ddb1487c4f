/**
 * The writer thread: takes batches and returns results, one at a time.
 *
 * It runs beside the main thread, so that waiting for the disk blocks no other request. `probe`, if
 * given, is a module whose default export is called at the named points of the write path.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { KiB } from '../../../base/limits.ts'
import { openConnection } from './connection.ts'
import { BatchRunner, type BatchResult, type Probe } from './run-batch.ts'

export interface WriterData {
  readonly databasePath: string
  readonly probe: string | null
}

/** `null` closes the writer; `truncate` empties the write-ahead log. */
export type WriterRequest = ArrayBuffer | 'truncate' | null

/** Returns the buffer of the batch for reuse: alone if every commit succeeded, as most do. */
export type WriterReply = ArrayBuffer | (BatchResult & { readonly buffer: ArrayBuffer })

export interface LogReply {
  /** Whether the write-ahead log is empty. */
  readonly truncated: boolean
}

/** Page cache of the writing connection. */
const CACHE_KIB = 2 * 1024

/**
 * Pages of the write-ahead log, 8 MB, that are copied into the database together. Copying takes two
 * more flushes, and writes pages that changed often only once. Decision 0062.
 */
const LOG_PAGES = 2_000

/**
 * The log's length is checked after this many batches or bytes of batches. That is a few hundred
 * pages, but more after a batch that moves much data within the database, such as the end of a
 * large transaction.
 *
 * A check takes as long as a short batch without its flush, and on one core it delays the callers
 * just answered.
 */
const LOOK_AFTER = { batches: 16, bytes: 64 * KiB } as const

const { databasePath, probe: probeUrl }: WriterData = workerData
const port = parentPort!
const probe: Probe = probeUrl === null ? () => {} : (await import(probeUrl)).default
const db = openConnection(databasePath, { cacheKiB: CACHE_KIB })
const runner = new BatchRunner(db, probe)
const logPages = db.prepare('PRAGMA wal_checkpoint(NOOP)')
const copyLog = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
/** Batches and bytes since the log's length was last checked. */
const unseen = { batches: 0, bytes: 0 }

port.on('message', (buffer: WriterRequest) => {
  if (buffer === null) {
    db.close()
    port.close()
    return
  }
  if (buffer === 'truncate') {
    port.postMessage({ truncated: truncate() } satisfies LogReply)
    return
  }
  const result = runner.run(buffer)
  probe('replying')
  const reply: WriterReply = isMade(result) ? buffer : { ...result, buffer }
  port.postMessage(reply, [buffer])
  probe('replied')
  tidyLog(result.bytes)
})

function isMade({ refused, failed, unknown }: BatchResult): boolean {
  return unknown === undefined && refused.length === 0 && failed.length === 0
}

/** Runs after the reply, so no caller waits for it. Pages not copied now are copied later, or by a commit. */
function tidyLog(bytes: number): void {
  unseen.batches += 1
  unseen.bytes += bytes
  if (unseen.batches < LOOK_AFTER.batches && unseen.bytes < LOOK_AFTER.bytes) return
  unseen.batches = unseen.bytes = 0
  try {
    if (Number(logPages.get()?.['log']) >= LOG_PAGES) copyLog.get()
  } catch {
    // The disk may be full, say; the log still has all the data.
  }
}

/** Data in the log is safe there, so readers that block the checkpoint, or a full disk, are no fault. */
function truncate(): boolean {
  try {
    return db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0
  } catch {
    return false
  }
}

port.postMessage('ready')

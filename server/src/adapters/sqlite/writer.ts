/**
 * The thread that writes: batches in, results out, one at a time.
 *
 * Beside the main thread, so that waiting for the disk is nobody else's waiting. `probe`, if given, is a
 * module whose default export is called at the named points of the write path.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { KiB } from '../../base/limits.ts'
import { openConnection } from './connection.ts'
import { BatchRunner, type BatchResult, type Probe } from './run-batch.ts'

export interface WriterData {
  readonly databasePath: string
  readonly probe: string | null
}

/** An empty message closes the writer; `truncate` has it empty the write-ahead log. */
export type WriterRequest = ArrayBuffer | 'truncate' | null

/** The batch's buffer, to be filled again: alone where every commit of it was made, as most are. */
export type WriterReply = ArrayBuffer | (BatchResult & { readonly buffer: ArrayBuffer })

export interface LogReply {
  /** Whether the write-ahead log is empty. */
  readonly truncated: boolean
}

/** The page cache of the connection that writes. */
const CACHE_KIB = 2 * 1024

/**
 * So many pages of the write-ahead log, 8 MB, are copied into the database together: it takes two more flushes, and many
 * pages are written once that were changed often. Decision 0062.
 */
const LOG_PAGES = 2_000

/**
 * After so many batches, or so many bytes of them, the log's length is asked for: a few hundred pages of it, but where a batch
 * moves much that it does not bring along, as the end of a large transaction does.
 *
 * To ask takes as long as a short batch takes besides its flush, and on one core whoever was replied to waits for it.
 */
const LOOK_AFTER = { batches: 16, bytes: 64 * KiB } as const

const { databasePath, probe: probeUrl }: WriterData = workerData
const port = parentPort!
const probe: Probe = probeUrl === null ? () => {} : (await import(probeUrl)).default
const db = openConnection(databasePath, { cacheKiB: CACHE_KIB })
const runner = new BatchRunner(db, probe)
const logPages = db.prepare('PRAGMA wal_checkpoint(NOOP)')
const copyLog = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
/** Since the log's length was asked for. */
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

/** Nobody waits for it who has been replied to. What cannot be copied now is copied later, or by a commit. */
function tidyLog(bytes: number): void {
  unseen.batches += 1
  unseen.bytes += bytes
  if (unseen.batches < LOOK_AFTER.batches && unseen.bytes < LOOK_AFTER.bytes) return
  unseen.batches = unseen.bytes = 0
  try {
    if (Number(logPages.get()?.['log']) >= LOG_PAGES) copyLog.get()
  } catch {
    // A full disk, say: the log has it all.
  }
}

/** What the log holds is safe where it is: readers in the way, or a full disk, are no fault. */
function truncate(): boolean {
  try {
    return db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0
  } catch {
    return false
  }
}

port.postMessage('ready')

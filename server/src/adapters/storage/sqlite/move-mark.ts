import {
  existsSync,
  fsyncSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { diskFaultOf } from '../../../base/disk-fault.ts'

/** Marks a data folder as the source of a move. */
export interface MoveMark {
  /** The move's id, which the target stores too. */
  readonly id: string
  /** Whether all data was copied and compared. */
  readonly finished: boolean
}

const NAME = 'symbolon.moved'

/** Throws if the file is not a mark. */
export function readMoveMark(folder: string): MoveMark | null {
  const path = join(folder, NAME)
  if (!existsSync(path)) return null
  try {
    const { move, finished } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    if (typeof move === 'string' && typeof finished === 'boolean') return { id: move, finished }
  } catch {
    // Throws below.
  }
  throw new Error(`Cannot use ${folder}: ${NAME} in it is not what this program writes`)
}

/** Returns once the mark is on disk. Only the holder of the folder may call this. */
export function writeMoveMark(folder: string, { id, finished }: MoveMark): void {
  const path = join(folder, NAME)
  try {
    writeFileSync(`${path}.part`, `${JSON.stringify({ move: id, finished })}\n`, {
      mode: 0o600,
      flush: true,
    })
  } catch (cause) {
    const reason = diskFaultOf(cause)
    throw reason === null ? cause : new Error(`Cannot write ${path}.part: ${reason}`, { cause })
  }
  renameSync(`${path}.part`, path)
  const opened = openSync(folder, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

/** Throws if the data was moved to another store, or is being moved: two copies would diverge. */
export function refuseMoved(folder: string): void {
  const mark = readMoveMark(folder)
  if (mark === null) return
  const state = mark.finished
    ? 'its data was moved to a PostgreSQL database, and goes on there: set SYMBOLON_DATABASE_URL; to give that up and ' +
      `begin again from what is here, remove ${NAME}`
    : 'its data is on its way to a PostgreSQL database: run symbolon migrate again to finish; to give that up and go on ' +
      `here, remove ${NAME}`
  throw new Error(`Cannot open ${folder}: ${state}`)
}

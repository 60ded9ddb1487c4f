import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { compareCheckpoints, type ComparedCheckpoints } from '../audit/checkpoint-comparison.ts'
import { CHECKPOINT_LINE_CHARS_MAX, KiB, VERIFY_REPORT_MS } from '../base/limits.ts'
import { ConfigError } from '../config.ts'
import type { CommandInput } from './command.ts'
import { fileError } from './file-error.ts'

/** The lines of the files of `--against`, each as long as it was when it was opened. */
export interface CheckpointLines {
  readonly read: () => AsyncIterable<string>
  readonly close: () => Promise<void>
}

/**
 * Opens the files. Call this before the database is read: each line in them is then of a checkpoint that the database has had, since
 * a service writes the line after the commit. Rejects with ConfigError unless they are regular files, since others have no length.
 */
export async function openCheckpointLines(paths: readonly string[]): Promise<CheckpointLines> {
  const opened: { readonly file: FileHandle; readonly size: number }[] = []
  const close = async (): Promise<void> => {
    for (const { file } of opened) await file.close()
  }
  try {
    for (const path of paths) {
      const flags = constants.O_RDONLY | constants.O_NONBLOCK
      const file = await open(path, flags).catch(fileError('against', path, 'read'))
      opened.push({ file, size: 0 })
      const stats = await file.stat()
      if (!stats.isFile()) {
        throw new ConfigError(`--against is '${path}', which is not a regular file.`)
      }
      opened[opened.length - 1] = { file, size: stats.size }
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    read: async function* () {
      for (const { file, size } of opened) yield* linesOf(file, size)
    },
    close,
  }
}

/**
 * Compares the checkpoints in the files with the database, and reports the progress every VERIFY_REPORT_MS. Rejects with ConfigError
 * if the files hold none at all: they are the wrong ones.
 */
export async function compareWithFiles(
  world: Parameters<typeof compareCheckpoints>[0],
  lines: CheckpointLines,
  { tenant, err }: { readonly tenant: string | undefined; readonly err: CommandInput['err'] },
): Promise<ComparedCheckpoints> {
  const { clock } = world
  let reported = clock.elapsed()
  const onProgress = (checkpoints: number): void => {
    if (clock.elapsed() - reported < VERIFY_REPORT_MS) return
    reported = clock.elapsed()
    err(`${checkpoints} checkpoints compared`)
  }
  const compared = await compareCheckpoints(world, lines.read(), { tenant, onProgress })
  if (compared.found === 0)
    throw new ConfigError('--against names no file with an audit checkpoint in it.')
  return compared
}

/** Yields the lines of the first `size` bytes, except those that are too long. A last line that was cut off is left out. */
async function* linesOf(file: FileHandle, size: number): AsyncIterable<string> {
  const [decoder, chunk] = [new StringDecoder('utf8'), Buffer.alloc(CHUNK_BYTES)]
  let [at, begun, tooLong] = [0, '', false]
  while (at < size) {
    const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, size - at), at)
    if (bytesRead === 0) break
    at += bytesRead
    const pieces = decoder.write(chunk.subarray(0, bytesRead)).split('\n')
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) {
        if (!tooLong) yield begun
        begun = ''
        tooLong = false
      }
      tooLong ||= begun.length + piece.length > CHECKPOINT_LINE_CHARS_MAX
      begun = tooLong ? '' : begun + piece
    }
  }
  if (!tooLong && begun.trimEnd().endsWith('}')) yield begun
}

const CHUNK_BYTES = 256 * KiB

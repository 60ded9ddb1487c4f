import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { diskFaultOf } from '../../base/disk-fault.ts'

/** A file that cannot be appended to. Its message completes "the file, which ...". */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile'
}

/**
 * A file that several processes may append lines of JSON to. It is opened for each append, so that it may be renamed at any time
 * (logrotate): the next append creates it anew, readable by its owner alone.
 */
export class AppendFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /**
   * Rejects with UnusableFile unless it can be appended to: a regular file that not everyone can write to, and that is empty or
   * holds JSON, so that no other file is damaged by mistake. Creates it if it is missing and `create` is set; otherwise a missing
   * file passes.
   */
  async check({ create }: { readonly create: boolean }): Promise<void> {
    const file = await openFor(this.path, create).catch((error: NodeJS.ErrnoException) => {
      if (!create && error.code === 'ENOENT') return null
      throw new UnusableFile(reasonOf(error), { cause: error })
    })
    if (file === null) return
    try {
      const size = await sizeOf(file)
      const start = await textAt(file, 0, Math.min(size, START_BYTES))
      if (!/^[\0\n]*(?:$|\{(?:["\n]|$))/.test(start)) {
        throw new UnusableFile('holds something else than lines of JSON, and is not appended to')
      }
    } finally {
      await file.close()
    }
  }

  /** Appends `lines` in one write, and resolves once they are on disk. */
  async append(lines: string): Promise<void> {
    const file = await openFor(this.path, true)
    try {
      const size = await sizeOf(file)
      // An append that a full disk or a power cut ended early must not run into this one.
      const isCut = size > 0 && (await textAt(file, size - 1, 1)) !== '\n'
      let rest = Buffer.from(isCut ? `\n${lines}` : lines)
      while (rest.length > 0) rest = rest.subarray((await file.write(rest)).bytesWritten)
      await file.sync()
      if (size === 0) await syncFolder(dirname(this.path))
    } finally {
      await file.close()
    }
  }
}

function openFor(path: string, create: boolean): Promise<FileHandle> {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  // Without O_NONBLOCK, a named pipe or a terminal could make this wait forever.
  const flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  return open(path, create ? flags | O_CREAT : flags, 0o600)
}

/** Rejects unless it is a regular file that not everyone can write to. */
async function sizeOf(file: FileHandle): Promise<number> {
  const { mode, size } = await file.stat()
  if ((mode & constants.S_IFMT) !== constants.S_IFREG) {
    throw new UnusableFile('is not a regular file')
  }
  if ((mode & 0o002) !== 0) throw new UnusableFile('every user of the machine may write to')
  return size
}

async function textAt(file: FileHandle, position: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
  return buffer.toString('latin1', 0, bytesRead)
}

/** A new file is on disk only once its name is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ELOOP') return 'is a symbolic link'
  if (error.code === 'EISDIR') return 'is a folder'
  if (error.code === 'ENOENT') return 'cannot be created: its folder does not exist'
  if (error.code === 'ENOTDIR') return 'cannot be created: its folder is not one'
  return `cannot be written: ${diskFaultOf(error) ?? error.code ?? error.message}`
}

/** Of a file that exists, enough to tell JSON from something else. */
const START_BYTES = 1024

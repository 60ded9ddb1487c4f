/**
 * The root key file: read only if no other user can read or replace it, created whole or not at
 * all.
 *
 * Every error says what to change, and none reveals the file's content. 32 raw bytes are the only
 * encoding, so it is never ambiguous.
 */
import { randomBytes, randomFillSync } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { link, lstat, open, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { diskFaultOf } from '../../base/disk-fault.ts'

export const ROOT_KEY_BYTES = 32

/** Whether the path exists, safe or not. */
export async function hasRootKey(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw new Error(`Cannot look for the root key file ${path}: ${reasonOf(error)}`, {
      cause: error,
    })
  }
}

/** Opens a pipe too, to check and reject it: waiting for its writer would block the start forever. */
const HOW_TO_OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Returns the 32 bytes, for the caller to wipe. Throws if the file is missing or unsafe. */
export async function readRootKey(path: string): Promise<Buffer> {
  await assertFolderSafe(path)
  const file = await open(path, HOW_TO_OPEN).catch((cause: unknown) => {
    throw new Error(`Cannot open the root key file ${path}: ${reasonOf(cause)}`, { cause })
  })
  try {
    // Checks the open file, not the path, which may name another file by then.
    assertFileSafe(path, await file.stat())
    const bytes = Buffer.alloc(ROOT_KEY_BYTES)
    const { bytesRead } = await file.read(bytes, 0, ROOT_KEY_BYTES, 0)
    if (bytesRead !== ROOT_KEY_BYTES) throw new Error(`Cannot read the root key file ${path} whole`)
    return bytes
  } finally {
    await file.close()
  }
}

/**
 * Creates the file with a new key and returns true; returns false if there is one already.
 *
 * The key is on disk when the promise resolves. It is written to a temporary file, which is then
 * linked to the path. So the file is always whole, and of two processes that try, one wins and the
 * other leaves the file alone.
 */
export async function createRootKey(path: string): Promise<boolean> {
  await assertFolderSafe(path)
  const beside = `${path}.${randomBytes(8).toString('hex')}.new`
  try {
    await writeNewKey(beside)
    await link(beside, path)
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return false
    throw new Error(
      `Cannot create the root key file ${path}: ${diskFaultOf(cause) ?? 'it cannot be written'}`,
      { cause },
    )
  } finally {
    await rm(beside, { force: true })
  }
  await syncFolder(path)
  return true
}

async function writeNewKey(path: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  // Bypasses Random: a root key comes directly from the operating system.
  const bytes = randomFillSync(Buffer.alloc(ROOT_KEY_BYTES))
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    bytes.fill(0)
    await file.close()
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(resolve(path)), constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function assertFileSafe(path: string, file: Stats): void {
  const refuse = (what: string): never => {
    throw new Error(`Cannot use the root key file ${path}: ${what}`)
  }
  if (!file.isFile()) refuse('it must be a regular file')
  if (file.uid !== 0 && file.uid !== process.geteuid?.()) {
    refuse(
      `it belongs to user ${file.uid}; it must belong to the user the service runs as, or root`,
    )
  }
  const mode = file.mode & 0o7777
  if (mode !== 0o400 && mode !== 0o600) {
    refuse(`its mode is ${mode.toString(8).padStart(4, '0')}; run chmod 0400 on it`)
  }
  if (file.size !== ROOT_KEY_BYTES) {
    refuse(`it holds ${file.size} bytes; it must hold exactly ${ROOT_KEY_BYTES} random bytes`)
  }
}

/** A user who can rename files in the folder could replace the key with an older one, or remove it. */
async function assertFolderSafe(path: string): Promise<void> {
  const folder = dirname(resolve(path))
  const found = await stat(folder).catch((cause: unknown) => {
    throw new Error(`Cannot use the folder ${folder} for the root key: ${reasonOf(cause)}`, {
      cause,
    })
  })
  const sticky = (found.mode & 0o1000) !== 0
  if ((found.mode & 0o002) !== 0 && !sticky) {
    throw new Error(
      `Cannot use the folder ${folder} for the root key: every user may write to it; run chmod o-w on it`,
    )
  }
}

function reasonOf(error: unknown): string {
  const code = codeOf(error)
  return REASONS[code] ?? `it fails with ${code}`
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'an unknown error'
}

const REASONS: Record<string, string> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it is not a folder',
  EACCES: 'the user the service runs as may not read it',
  ELOOP: 'it is a symbolic link; name the file itself',
}

/** The password file of libpq: lines of `host:port:database:user:password`. */
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'

/** What a connection leads to, and as whom. */
export interface PasswordTarget {
  /** A name, an IP address, or the folder of a socket. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

/**
 * Returns the password that `file` has for `target`. The first line that matches counts; `*` matches anything, and `localhost`
 * any socket. Rejects with a message for the operator when there is none, or other users may read the file.
 */
export async function passwordFor(
  target: PasswordTarget,
  file: string | undefined,
): Promise<string> {
  if (file === undefined) throw missing(target, 'PGPASSFILE is not set')
  const password = passwordIn(await readPrivate(file), target)
  if (password === null) throw missing(target, `the password file '${file}' has no line for it`)
  if (password === '') {
    throw missing(target, `its line in the password file '${file}' has an empty password`)
  }
  return password
}

function missing({ host, port, database, user }: PasswordTarget, reason: string): Error {
  return new Error(
    `the database asks for a password for ${host}:${port}:${database}:${user}, and there is none: ${reason}`,
  )
}

/** Reads a file that only its owner may read. */
async function readPrivate(file: string): Promise<string> {
  let handle: FileHandle | null = null
  try {
    // A named pipe without a writer would block the thread that opens it.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('it is no regular file')
    if ((stats.mode & OTHERS) !== 0) {
      throw new Error('other users have access to it, so it is not read: run chmod 600 on it')
    }
    return await handle.readFile('utf8')
  } catch (error) {
    throw new Error(`the password file '${file}' cannot be used: ${(error as Error).message}`, {
      cause: error,
    })
  } finally {
    await handle?.close()
  }
}

/** The permissions of the group and of all other users. */
const OTHERS = 0o077

/** Returns the password of the first line that matches, perhaps an empty one; null without such a line. */
function passwordIn(text: string, target: PasswordTarget): string | null {
  for (const line of text.replace(/^\uFEFF/, '').split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = LINE.exec(line)
    if (fields === null) continue
    const [, host, port, database, user, password] = fields
    const socket = target.host.startsWith('/') && host === 'localhost'
    const found =
      (socket || matches(host!, target.host)) &&
      matches(port!, String(target.port)) &&
      matches(database!, target.database) &&
      matches(user!, target.user)
    if (found) return unescaped(password!)
  }
  return null
}

/** Five fields, between colons without a backslash before them. What follows the password is a comment, as in libpq. */
const LINE =
  /^((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):((?:[^\\:]|\\.|\\$)*)/

/** Whether a field as written, before its backslashes are removed, matches `value`. */
function matches(field: string, value: string): boolean {
  return field === '*' || unescaped(field) === value
}

/** A backslash makes the next character an ordinary one. */
function unescaped(field: string): string {
  return field.replaceAll(/\\(.)/g, '$1')
}

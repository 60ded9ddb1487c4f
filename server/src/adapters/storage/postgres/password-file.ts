/** The password file of libpq: lines of `host:port:database:user:password`. */
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
  const password = file === undefined ? undefined : passwordIn(await readPrivate(file), target)
  if (password !== undefined) return password
  const { host, port, database, user } = target
  const where = file === undefined ? 'PGPASSFILE is not set' : `'${file}' has no line for it`
  throw new Error(
    `a password is required for ${host}:${port}:${database}:${user}, and the password file is where it belongs: ${where}`,
  )
}

/** Reads a file that only its owner may read. */
async function readPrivate(file: string): Promise<string> {
  let handle: FileHandle | null = null
  try {
    handle = await open(file)
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

function passwordIn(text: string, target: PasswordTarget): string | undefined {
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = fieldsOf(line)
    if (fields === null) continue
    const [host, port, database, user, password] = fields
    const socket = target.host.startsWith('/') && host === 'localhost'
    const found =
      (socket || matches(host, target.host)) &&
      matches(port, String(target.port)) &&
      matches(database, target.database) &&
      matches(user, target.user)
    if (found) return password === '' ? undefined : password
  }
  return undefined
}

function matches(field: string, value: string): boolean {
  return field === '*' || field === value
}

/** Splits a line at its colons, of which `\:` is none; null without a password. */
function fieldsOf(line: string): [string, string, string, string, string] | null {
  const fields =
    /^((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):((?:[^\\:]|\\.)*):(.*)$/.exec(line)
  if (fields === null) return null
  const [host, port, database, user, password] = fields.slice(1).map(unescaped)
  return [host!, port!, database!, user!, password!]
}

/** A backslash makes the next character an ordinary one. */
function unescaped(field: string): string {
  return field.replaceAll(/\\(.)/g, '$1')
}

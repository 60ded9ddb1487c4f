import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** Maximum bytes in the path of a Unix socket, without its terminating zero. Source: unix(7). */
const SOCKET_PATH_BYTES_MAX = 107

/** The longest socket name in such a folder, after the six characters of mkdtemp. */
const REST_BYTES = Buffer.byteLength('XXXXXX/.s.PGSQL.65535')

/**
 * Creates a folder for sockets that other users can reach: below the temporary folder, or below /tmp if the socket's path
 * would be too long or another user could not enter the temporary folder.
 */
export function makeSocketFolder(prefix: string): string {
  const temporary = resolve(tmpdir())
  const length = Buffer.byteLength(join(temporary, prefix)) + REST_BYTES
  const fits = length <= SOCKET_PATH_BYTES_MAX && isOpenToOthers(temporary)
  return mkdtempSync(join(fits ? temporary : '/tmp', prefix))
}

/** Whether other users can enter the folder and all its parents. */
function isOpenToOthers(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false
  return folder === dirname(folder) || isOpenToOthers(dirname(folder))
}

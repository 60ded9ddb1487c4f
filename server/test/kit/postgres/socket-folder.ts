import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** Bytes in the path of a Unix socket, its closing zero left out. Source: unix(7). */
const SOCKET_PATH_BYTES_MAX = 107

/** The longest name of a socket that is made in such a folder, with the six characters of mkdtemp before it. */
const REST_BYTES = Buffer.byteLength('XXXXXX/.s.PGSQL.65535')

/**
 * Makes a folder for sockets that other users can reach: below the temporary folder, or below /tmp if the socket's path
 * would be too long or another user could not enter the temporary folder.
 */
export function makeSocketFolder(prefix: string): string {
  const temporary = resolve(tmpdir())
  const length = Buffer.byteLength(join(temporary, prefix)) + REST_BYTES
  const fits = length <= SOCKET_PATH_BYTES_MAX && isOpenToOthers(temporary)
  return mkdtempSync(join(fits ? temporary : '/tmp', prefix))
}

/** Whether other users may go through the folder and all that it lies in. */
function isOpenToOthers(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false
  return folder === dirname(folder) || isOpenToOthers(dirname(folder))
}

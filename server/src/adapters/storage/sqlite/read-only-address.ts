import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Returns the URI with which SQLite reads the database at `path` without creating or changing any file; null if its
 * write-ahead log holds commits and the index of that log is missing, which only a writer can build.
 *
 * While a service runs, and after it was killed, both companion files exist, and the reader shares or copies the index.
 * After a clean stop there is no log, and the file alone is the database. Source: sqlite.org/uri.html, and
 * sqlite.org/walformat.html, "Recovery".
 */
export function readOnlyAddress(path: string): URL | null {
  const address = pathToFileURL(resolve(path))
  const hasIndex = sizeOf(`${path}-shm`) !== null
  const logBytes = sizeOf(`${path}-wal`)
  if (hasIndex && logBytes !== null) address.search = '?mode=ro&readonly_shm=1'
  else if (logBytes === null || logBytes === 0) address.search = '?immutable=1'
  else return null
  return address
}

/** Returns null if there is no such file. */
function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null
}

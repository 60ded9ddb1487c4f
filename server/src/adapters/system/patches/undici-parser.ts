import type { Socket } from 'node:net'

/** Whether undici gave a connection up because of the data that it read, rather than that the destination closed it. */
export function isGivenUpByUndici(error: Error | null): boolean {
  return error !== null && 'code' in error && String(error.code).startsWith('UND_ERR_')
}

/**
 * Stops undici's parser from creating an error for every further line of an oversized header section. There may be ten
 * thousand such lines in the data read, each costing as much as twenty ordinary ones. Undici has no option for this, so
 * it changes the parser's internal limit. Returns false if there is no such parser.
 */
export function liftHeaderLimit(socket: Socket): boolean {
  const key = Object.getOwnPropertySymbols(socket).find((it) => it.description === 'parser')
  const parser: unknown = key === undefined ? null : Reflect.get(socket, key)
  if (typeof parser !== 'object' || parser === null || !('headersMaxSize' in parser)) return false
  parser.headersMaxSize = Infinity
  return true
}

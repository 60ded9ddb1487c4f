/**
 * Returns the client for these header fields: undici, or Node's own client for those undici would refuse or drop.
 *
 * Throws for fields that name the destination or frame the body. These come from the route and the body; a second,
 * conflicting source is how request smuggling works.
 */
export function wayOf(headers: readonly string[]): 'undici' | 'node' {
  let way: 'undici' | 'node' = 'undici'
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // The length excludes most names, which saves lowercasing them.
    if (!LENGTHS.has(name.length)) continue
    const folded = name.toLowerCase()
    if (NOT_THEIRS.has(folded)) throw new Error(`Cannot send: ${folded} is not the sender's to set`)
    if (folded === 'keep-alive') way = 'node'
    if (folded === 'connection' && !UNDICI_CONNECTION.test(headers[at + 1]!)) way = 'node'
  }
  return way
}

const NOT_THEIRS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
])
const LENGTHS: ReadonlySet<number> = new Set(
  [...NOT_THEIRS, 'keep-alive', 'connection'].map((it) => it.length),
)

const UNDICI_CONNECTION = /^(?:close|keep-alive)$/i

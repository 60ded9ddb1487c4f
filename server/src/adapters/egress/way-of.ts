/**
 * Says what can send these fields: undici, or Node's own client for what undici would refuse or leave out.
 *
 * Throws for the fields that say where a request goes and where it ends: these come from the route and the body,
 * and a second opinion on them is how requests are smuggled.
 */
export function wayOf(headers: readonly string[]): 'undici' | 'node' {
  let way: 'undici' | 'node' = 'undici'
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // Most names are told apart by their length, and need not be put into lower case.
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

export interface CarryingWay {
  readonly client: 'undici' | 'node'
  /** Whether the fields announce that the connection closes with the response. */
  readonly closes: boolean
}

/**
 * Returns how a request with these header fields is carried: by undici, or by Node's own client if undici would refuse or
 * drop one of them.
 *
 * Throws for fields that name the destination or frame the body. These come from the route and the body; a second,
 * conflicting source is how request smuggling works.
 */
export function wayOf(headers: readonly string[]): CarryingWay {
  let client: CarryingWay['client'] = 'undici'
  let closes = false
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    // The length excludes most names, which saves lowercasing them.
    if (!LENGTHS.has(name.length)) continue
    const folded = name.toLowerCase()
    if (NOT_THEIRS.has(folded)) throw new Error(`Cannot send: ${folded} is not the sender's to set`)
    if (folded === 'keep-alive') client = 'node'
    if (folded !== 'connection') continue
    const value = headers[at + 1]!
    if (!UNDICI_CONNECTION.test(value)) client = 'node'
    if (CLOSE.test(value)) closes = true
  }
  return { client, closes }
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
const CLOSE = /(?:^|[,\s])close(?:[,\s]|$)/i

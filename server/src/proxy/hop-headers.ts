/**
 * Hop-by-hop headers, which must not be forwarded.
 *
 * Source: RFC 9110, section 7.6.1; interface.md, Proxy, its headers.
 */
const HOP_BY_HOP = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
])

/** Returns a predicate on folded names: whether a header ends at this hop, by itself or because `Connection` nominates it. */
export function endsHere(headers: readonly string[]): (folded: string) => boolean {
  let nominated: Set<string> | null = null
  for (let at = 0; at < headers.length; at += 2) {
    const name = fold(headers[at]!)
    if (name !== 'connection' && name !== 'proxy-connection') continue
    nominated ??= new Set()
    for (const it of headers[at + 1]!.split(',')) nominated.add(fold(it.trim()))
  }
  return (name) =>
    HOP_BY_HOP.has(name) || name.startsWith('proxy-') || nominated?.has(name) === true
}

/** Returns the form in which names are compared: many servers treat `_` and `-` alike. */
export function fold(name: string): string {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

/**
 * Headers that are between two neighbours only, and must not be passed on.
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

/** Returns what tells, of a name in its folded form, whether these headers end here: their own and all they nominate. */
export function endsHere(headers: readonly string[]): (folded: string) => boolean {
  const nominated = new Set<string>()
  for (let at = 0; at < headers.length; at += 2) {
    const name = fold(headers[at]!)
    if (name !== 'connection' && name !== 'proxy-connection') continue
    for (const it of headers[at + 1]!.split(',')) nominated.add(fold(it.trim()))
  }
  return (name) => HOP_BY_HOP.has(name) || name.startsWith('proxy-') || nominated.has(name)
}

/** The form in which names are compared: many servers take `_` and `-` for the same. */
export function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-')
}

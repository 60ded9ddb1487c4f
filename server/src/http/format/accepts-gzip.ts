/**
 * Whether an Accept-Encoding header accepts gzip: named with a weight above zero, or not named and covered by `*`. A coding with
 * a malformed weight counts as not accepted. Source: RFC 9110, section 12.5.3.
 */
export function acceptsGzip(header: string): boolean {
  const weights = new Map<string, number>()
  for (const item of header.split(',')) {
    const [coding, weight = 'q=1', ...rest] = item.split(';').map((it) => it.trim().toLowerCase())
    if (coding === 'gzip' || coding === '*')
      weights.set(coding, rest.length > 0 ? 0 : weightOf(weight))
  }
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0
}

function weightOf(text: string): number {
  return WEIGHT.test(text) ? Number(text.slice(2)) : 0
}

const WEIGHT = /^q=(?:1(?:\.0{0,3})?|0(?:\.\d{0,3})?)$/

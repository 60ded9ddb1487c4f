/** The header `Forwarded`. Source: RFC 7239, section 4. */

/** The parameters of an element, by lower-case name. */
export type ForwardedElement = ReadonlyMap<string, string>

/**
 * Returns the element that begins at `at`, and where it ends: at a comma, or at the end of the text. Null if it is malformed, or names
 * a parameter twice.
 */
export function forwardedElementAt(
  text: string,
  at: number,
): { element: ForwardedElement; end: number } | null {
  const element = new Map<string, string>()
  for (let from = at; ; from++) {
    PARAMETER.lastIndex = from
    const [all, name, quoted, token] = PARAMETER.exec(text) ?? []
    if (all === undefined || element.has(name!.toLowerCase())) return null
    element.set(name!.toLowerCase(), quoted ?? token!)
    from += all.length
    if (from === text.length || text[from] === ',') return { element, end: from }
    if (text[from] !== ';') return null
  }
}

/** Returns all elements; null if one is malformed, since where it ends is unknown then. */
export function forwardedElementsOf(text: string): ForwardedElement[] | null {
  const elements: ForwardedElement[] = []
  for (let at = 0; ; at++) {
    const found = forwardedElementAt(text, at)
    if (found === null) return null
    elements.push(found.element)
    at = found.end
    if (at === text.length) return elements
  }
}

/** A quoted value with an escape is no scheme, no host and no address, so it counts as malformed. */
const PARAMETER = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"([^"\\]*)"|([^;,"\s]+))[ \t]*/y

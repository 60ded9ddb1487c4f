/** Query parameters as sent: a name given twice has several values. */
export type QueryParameters = ReadonlyMap<string, readonly string[]>

/** Returns the query parameters of a request target. */
export function queryOf(url: string): QueryParameters {
  const at = url.indexOf('?')
  if (at < 0) return NO_QUERY
  const query = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    const values = query.get(name)
    if (values === undefined) query.set(name, [value])
    else values.push(value)
  }
  return query
}

const NO_QUERY: QueryParameters = new Map()

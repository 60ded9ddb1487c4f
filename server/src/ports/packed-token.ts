/** Packs a token's lists into one column each, for stores that keep a token in a row. */

/** A single container as it is; none or several as JSON. */
export function packContainers(containers: readonly string[]): string {
  const [only] = containers
  if (containers.length === 1 && !only!.startsWith('[')) return only!
  return JSON.stringify(containers)
}

export function unpackContainers(text: string): string[] {
  return text.startsWith('[') ? JSON.parse(text) : [text]
}

/** All index terms of a token, so that they can be removed with it. */
export function packIndexes(indexes: readonly Uint8Array[]): Uint8Array | null {
  if (indexes.length === 0) return null
  return Buffer.concat(indexes.flatMap((hash) => [Uint8Array.of(hash.length), hash]))
}

export function unpackIndexes(bytes: Uint8Array): Uint8Array[] {
  const indexes: Uint8Array[] = []
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + 1 + bytes[at]!
    indexes.push(bytes.slice(at + 1, end))
  }
  return indexes
}

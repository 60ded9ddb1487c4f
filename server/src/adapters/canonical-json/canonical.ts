import stringify from 'json-stable-stringify'

/** Returns `text` in the form that `CanonicalJson` promises. */
export function canonical(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(ordered(text))
}

function ordered(text: string): string {
  try {
    return stringify(JSON.parse(text)) ?? text
  } catch {
    return text
  }
}

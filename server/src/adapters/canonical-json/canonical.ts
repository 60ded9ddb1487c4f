import stringify from 'json-stable-stringify'

/** Returns `text` in the form that `CanonicalJson` promises. */
export function canonical(text: string): Uint8Array<ArrayBuffer> {
  // Replaces lone surrogates as UTF-8 does: once parsed, they would be written as escapes.
  return new TextEncoder().encode(ordered(text.toWellFormed()))
}

function ordered(text: string): string {
  try {
    return stringify(JSON.parse(text)) ?? text
  } catch {
    return text
  }
}

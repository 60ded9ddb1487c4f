/**
 * Negotiates the compression of responses between destination and caller.
 *
 * The destination is asked only for codings that this service can decode, so that a response can always be decoded; one in
 * a coding the caller accepts is forwarded unchanged.
 */
import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'

export interface AcceptedCodings {
  /** The value of Accept-Encoding for the destination. */
  readonly asked: string
  /** Whether the caller accepts a body in this coding. */
  takes(coding: string): boolean
}

const READABLE = new Set(['br', 'deflate', 'gzip', 'x-gzip', 'zstd'])

/** Parses the Accept-Encoding of `headers`, names and values alternating. */
export function acceptedFrom(headers: readonly string[]): AcceptedCodings {
  const values: string[] = []
  let ranged = false
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!.toLowerCase()
    if (name === 'accept-encoding') values.push(headers[at + 1]!)
    ranged ||= name === 'range'
  }
  // A range of a compressed body cannot be decoded by itself.
  if (values.length === 0) return { asked: ranged ? 'identity' : 'gzip', takes: () => false }

  const items = values.flatMap((it) => it.split(',')).map((it) => it.trim())
  const named = new Set(items.map(codingOf))
  const refused = new Set(items.filter((it) => REFUSAL.test(it)).map(codingOf))
  const any = named.has('*') && !refused.has('*')
  const accepted = items
    // `*` becomes gzip, which every server supports.
    .map((it) => (codingOf(it) === '*' && !named.has('gzip') ? it.replace('*', 'gzip') : it))
    .filter((it) => READABLE.has(codingOf(it)) || codingOf(it) === 'identity')
  return {
    asked: accepted.length === 0 ? 'identity' : accepted.join(', '),
    takes: (coding) => {
      const names = [coding, EQUIVALENT[coding] ?? coding]
      return (any || names.some((it) => named.has(it))) && !names.some((it) => refused.has(it))
    },
  }
}

/** Returns the decoder of a body in `coding`, or null if this service has none. */
export function decoderFor(coding: string, first: Uint8Array): Transform | null {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'br':
      return createBrotliDecompress()
    case 'zstd':
      return createZstdDecompress(ZSTD)
    case 'deflate':
      // Many servers omit the zlib wrapper that RFC 9110, section 8.4.1.2, requires.
      return (first[0]! & 0x0f) === 8 ? createInflate() : createInflateRaw()
    default:
      return null
  }
}

/**
 * Bounds the decoder's window, 8 MiB: a few bytes could otherwise demand 128 MiB.
 *
 * Source: RFC 9659, section 3.
 */
const ZSTD = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

/** Whether decoderFor() would return one. */
export function isReadable(coding: string): boolean {
  return READABLE.has(coding)
}

const REFUSAL = /;\s*q=0(?:\.0*)?\s*$/i
const EQUIVALENT: Readonly<Record<string, string>> = { gzip: 'x-gzip', 'x-gzip': 'gzip' }

function codingOf(item: string): string {
  return item.split(';', 1)[0]!.trim().toLowerCase()
}

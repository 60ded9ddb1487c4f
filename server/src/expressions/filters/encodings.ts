/** Filters that convert between texts, bytes and their encodings. */
import { createHmac } from 'node:crypto'
import type { Json } from '../../base/json.ts'
import { FilterError } from '../expression-error.ts'
import type { EvaluationRun } from '../evaluation-run.ts'
import { textOf } from '../text.ts'
import { EACH, filter, textFilter, type Filter, type Parameter } from './filter.ts'

/** Documented names, mapped to the names of node:crypto. */
const ALGORITHMS = new Map([
  ['sha-1', 'sha1'],
  ['sha-256', 'sha256'],
  ['sha-512', 'sha512'],
])

const algorithm: Parameter<string> = {
  optional: false,
  read(value) {
    const name = typeof value === 'string' ? ALGORITHMS.get(value.toLowerCase()) : undefined
    if (name === undefined) throw new FilterError('argument_invalid')
    return name
  },
}

/** A text that is not empty: an empty key would turn a keyed hash into a plain one. */
const key: Parameter<string> = {
  optional: false,
  read(value) {
    if (typeof value !== 'string' || value === '') throw new FilterError('argument_invalid')
    return value
  },
}

/** The cost of a keyed hash, and of each of its characters, which may take three bytes. */
const HMAC = 512
const HASHED = 2

export const encodingFilters: Readonly<Record<string, Filter>> = {
  hmac: {
    ...filter([algorithm, key], (input, [algorithm, key], run) => {
      if (input === null) throw new FilterError('value_missing')
      const text = textOf(input, run)
      run.spend(HMAC + (text.length + key.length) * HASHED)
      return createHmac(algorithm, key).update(text).digest()
    }),
    bytes: 'made',
  },
  to_base16: encoder((bytes) => bytes.toString('hex').toUpperCase()),
  to_base64: encoder((bytes) => bytes.toString('base64')),

  base64_encode: textFilter([], (it) => Buffer.from(it).toString('base64')),
  base64_url_safe_encode: textFilter([], (it) =>
    Buffer.from(it).toString('base64').replaceAll('+', '-').replaceAll('/', '_'),
  ),
  base64_decode: textFilter([], (it) => decodeBase64(it, /^[A-Za-z0-9+/]*={0,2}$/)),
  base64_url_safe_decode: textFilter([], (it) => decodeBase64(it, /^[A-Za-z0-9_-]*={0,2}$/)),

  url_encode: textFilter([], encodeUrl, 3),
  url_decode: textFilter([], decodeUrl, 3),

  escape: textFilter([], (it) => it.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign]!), EACH),
  escape_once: textFilter(
    [],
    (it) => it.replaceAll(/[<>"']|&(?!(?:[a-zA-Z]+|#\d+);)/g, (sign) => ENTITIES[sign]!),
    EACH,
  ),
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Takes bytes from a preceding filter, or the UTF-8 bytes of a text. */
function encoder(encode: (bytes: Buffer) => string): Filter {
  return {
    parameters: [],
    bytes: 'taken',
    apply(input: Json | Uint8Array, _args, run) {
      if (input === null) throw new FilterError('value_missing')
      if (input instanceof Uint8Array) return encode(Buffer.from(input))
      const text = textOf(input, run)
      run.spend(text.length)
      return encode(Buffer.from(text))
    },
  }
}

/** Form encoding: a space becomes a plus sign, and only letters, digits and `-_.~` are kept. */
function encodeUrl(plain: string, _args: readonly [], run: EvaluationRun): string {
  run.spend((Buffer.byteLength(plain) - plain.length) * EACH)
  return encodeURIComponent(plain.toWellFormed())
    .replaceAll('%20', '+')
    .replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function decodeUrl(encoded: string): string {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '))
  } catch {
    throw new FilterError('encoding_invalid')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeBase64(encoded: string, form: RegExp): string {
  if (!form.test(encoded)) throw new FilterError('encoding_invalid')
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'))
  } catch {
    throw new FilterError('encoding_invalid')
  }
}

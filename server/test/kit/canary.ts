/**
 * Canaries: made-up plaintext that can be found again wherever it ends up.
 *
 * All canaries of a run begin with the same twelve characters (or, where only digits are allowed, the same twelve digits). A
 * search looks for these prefixes in every common encoding of bytes, and so finds any of a million canaries in one pass per
 * encoding.
 */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readdirSync, readSync, fstatSync } from 'node:fs'
import { join } from 'node:path'

export interface Canary {
  /** Twelve letters and digits. */
  readonly text: string
  /** Twelve digits, the first not zero. */
  readonly digits: string
}

/** One encoding of the prefix of a canary. */
export interface Trace {
  /** For example `base64, 2 bytes in`. */
  readonly form: string
  readonly bytes: Buffer
}

/** Returns the canary of a run; each seed has a different one. */
export function canaryOf(seed: number): Canary {
  const hash = createHash('sha256').update(`canary ${seed}`).digest()
  const pick = (alphabet: string, from: number): string =>
    Array.from({ length: 12 }, (_, at) => alphabet[hash[from + at]! % alphabet.length]!).join('')
  return { text: pick(LETTERS_AND_DIGITS, 0), digits: `4${pick('0123456789', 12).slice(1)}` }
}

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Returns every encoding in which to search for the canary. */
export function tracesOf({ text, digits }: Canary): Trace[] {
  return [...formsOf(text, 'text'), ...formsOf(digits, 'digits')]
}

function formsOf(beginning: string, kind: string): Trace[] {
  const bytes = Buffer.from(beginning)
  const hex = bytes.toString('hex')
  const each = (write: (hexOfByte: string) => string): string =>
    (hex.match(/../g) ?? []).map((it) => write(it)).join('')
  const forms: [form: string, written: string | Buffer][] = [
    ['as it is', bytes],
    ['UTF-16, little end first', Buffer.from(beginning, 'utf16le')],
    ['UTF-16, big end first', Buffer.from(beginning, 'utf16le').swap16()],
    ['hex', hex],
    ['hex in capitals', hex.toUpperCase()],
    ['percent-encoded', each((it) => `%${it}`)],
    ['percent-encoded in capitals', each((it) => `%${it.toUpperCase()}`)],
    ['escaped as in JSON', each((it) => `\\u00${it}`)],
    ['escaped as in JSON, in capitals', each((it) => `\\u00${it.toUpperCase()}`)],
    ['list of bytes', [...bytes].join(',')],
    ...[0, 1, 2].map((before) => [`base64, ${before} bytes in`, base64Of(bytes, before)] as const),
  ].map(([form, written]) => [form as string, written as string | Buffer])
  return forms.map(([form, written]) => ({ form: `${kind}, ${form}`, bytes: Buffer.from(written) }))
}

/**
 * Returns the base64 characters that do not depend on the neighbours of `bytes`, which begin `before` bytes into a group of
 * three. They are mostly letters and digits; base64url covers the rest.
 */
function base64Of(bytes: Buffer, before: number): string {
  const written = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
  return written.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
}

/** Returns the encoding in which a canary occurs in `bytes`, or null. */
export function findTrace(traces: readonly Trace[], bytes: Buffer): string | null {
  return traces.find((it) => bytes.includes(it.bytes))?.form ?? null
}

/**
 * Returns the files below `folder` that contain a canary, each with its encoding. Skips files that a running database
 * removes meanwhile.
 */
export function findTracesInFiles(traces: readonly Trace[], folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries
    .filter((it) => it.isFile())
    .flatMap(({ parentPath, name }) => {
      const form = findTraceInFile(traces, join(parentPath, name))
      return form === null ? [] : [`${name}: ${form}`]
    })
}

/** Reads in portions that overlap by more than the longest trace. */
function findTraceInFile(traces: readonly Trace[], file: string): string | null {
  const descriptor = openIfThere(file)
  if (descriptor === null) return null
  try {
    for (let at = 0; at < fstatSync(descriptor).size; at += PORTION_BYTES) {
      const read = readSync(descriptor, portion, 0, portion.length, at)
      const form = findTrace(traces, portion.subarray(0, read))
      if (form !== null) return form
    }
    return null
  } finally {
    closeSync(descriptor)
  }
}

function openIfThere(file: string): number | null {
  try {
    return openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export const PORTION_BYTES = 8 * 1024 * 1024
const OVERLAP_BYTES = 256

/** Shared by all files: a database has a thousand small ones. */
const portion = Buffer.allocUnsafeSlow(PORTION_BYTES + OVERLAP_BYTES)

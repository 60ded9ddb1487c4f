import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { PrincipalType } from '../base/access.ts'
import type { Random } from '../ports/random.ts'

/**
 * API keys: `key_local_pvt_` and 38 letters and digits; session keys are made the same way.
 *
 * 32 of them are random (190 bits, which cannot be guessed by trial, so a fast hash is as good as a slow one); the last 6 are a
 * CRC-32 of everything before them. The checksum tells a mistyped or invented key from a real one without asking the store, and
 * lets secret scanners be sure of a match. The key itself is shown once and not kept: a store gets its hash, and its first
 * characters, by which people tell keys apart.
 *
 * Source: interface.md, Authentication; the form is ours.
 */
export const API_KEY_PATTERN = /^key_local_(?:pvt|pub|mgt|sess)_[0-9A-Za-z]{38}$/

const KIND = { private: 'pvt', public: 'pub', management: 'mgt', session: 'sess' } as const
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_CHARS_MAX = 'key_local_sess_'.length + 38
const CHECKSUM_CHARS = 6
const SECRET_CHARS = 32
const PREFIX_CHARS = 'key_local_pvt_'.length + 4

/** Returns a new key for an application of this type, or for a session. */
export function makeApiKey(type: PrincipalType, random: Random): string {
  const body = `key_local_${KIND[type]}_${makeSecret(random)}`
  return body + checksum(body)
}

/** Whether `key` has the form of our keys, checksum included. Does not check that it exists. */
export function apiKeyLooksRight(key: string): boolean {
  if (key.length > KEY_CHARS_MAX || !API_KEY_PATTERN.test(key)) return false
  return key.endsWith(checksum(key.slice(0, -CHECKSUM_CHARS)))
}

/** Whether a well-formed key is a session key. */
export function isSessionKey(key: string): boolean {
  return key.startsWith(`key_local_${KIND.session}_`)
}

/** Returns the SHA-256 of `key`: 32 bytes, by which a store finds its principal. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** Returns the start of `key`: its type and 4 of its 38 characters. */
export function prefixOf(key: string): string {
  return key.slice(0, PREFIX_CHARS)
}

/** Returns 32 random letters and digits: 190 bits. */
export function makeSecret(random: Random): string {
  let text = ''
  while (text.length < SECRET_CHARS) {
    for (const byte of random.bytes(SECRET_CHARS + 8)) {
      // 248 is four times 62: the bytes above it would make the first eight digits likelier.
      if (byte < 248 && text.length < SECRET_CHARS) text += DIGITS[byte % 62]!
    }
  }
  return text
}

function checksum(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let place = 0; place < CHECKSUM_CHARS; place++) {
    text = DIGITS[rest % 62]! + text
    rest = Math.floor(rest / 62)
  }
  return text
}

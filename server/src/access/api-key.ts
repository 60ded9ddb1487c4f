import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { PrincipalType } from '../base/access.ts'
import type { Random } from '../ports/random.ts'

/**
 * API keys: `key_local_pvt_` and 38 letters and digits; session keys are made the same way.
 *
 * 32 of them are chance (190 bits, so a fast hash is as good as a slow one: nobody can try them all),
 * the last 6 are a CRC-32 of all that stands before. A mistyped or invented key is thereby told from a
 * real one without asking the store, and scanners for leaked secrets can be sure of what they found.
 * The key itself is shown once and not kept: a store gets its hash, and its first characters for
 * people to tell keys apart.
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

/** Whether `key` is made like one of ours, checksum included. Says nothing about who holds it. */
export function apiKeyLooksRight(key: string): boolean {
  if (key.length > KEY_CHARS_MAX || !API_KEY_PATTERN.test(key)) return false
  return key.endsWith(checksum(key.slice(0, -CHECKSUM_CHARS)))
}

/** Whether a key that looks right is a session's. */
export function isSessionKey(key: string): boolean {
  return key.startsWith(`key_local_${KIND.session}_`)
}

/** Returns the SHA-256 of `key`: 32 bytes, by which a store finds its holder. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** Returns the start of `key`: its kind and 4 of its 38 characters. */
export function prefixOf(key: string): string {
  return key.slice(0, PREFIX_CHARS)
}

/** Returns 32 letters and digits of chance: 190 bits. */
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

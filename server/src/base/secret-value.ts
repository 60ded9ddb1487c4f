/**
 * Write-only values in the configuration of a proxy or a reactor, as they are sent.
 *
 * Source: interface.md, Secrets in a configuration. Decision 0077.
 */
import { isJsonObject, type Json } from './json.ts'

/** Shown in place of every secret. Sent back under the name of a secret, it keeps that secret; it is never stored. */
export const SECRET_PLACEHOLDER = '__SYMBOLON_WRITE_ONLY_SECRET__'

/** Returns the secret in `{ "secret": "..." }`; null for any other value. */
export function secretIn(value: Json): string | null {
  if (!isJsonObject(value) || Object.keys(value).length !== 1) return null
  const secret = Object.hasOwn(value, 'secret') ? value['secret'] : null
  return typeof secret === 'string' ? secret : null
}

/** Whether a string or a name in it, at any depth, contains the placeholder. JSON escapes none of its characters. */
export function containsPlaceholder(value: Json): boolean {
  return JSON.stringify(value).includes(SECRET_PLACEHOLDER)
}

import { timingSafeEqual } from 'node:crypto'
import { isUuid } from '../base/id.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import type { TenantKeys } from '../ports/keyring.ts'

/**
 * Returns a pagination cursor: an internal id with a tag under the tenant's key, bound to one list.
 *
 * `list` identifies the list, filters included. A cursor that is forged, or belongs to another tenant or another list,
 * is invalid.
 */
export function cursorOf(keys: TenantKeys, list: string, internalId: string): string {
  const bytes = Buffer.from(internalId.replaceAll('-', ''), 'hex')
  return Buffer.concat([bytes, tagOf(keys, list, internalId)]).toString('base64url')
}

/** Returns the internal id in `cursor`; throws `cursor_invalid`. */
export function parseCursor(keys: TenantKeys, list: string, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const internalId = bytes
    .subarray(0, 16)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  const tag = bytes.subarray(16)
  const right = isUuid(internalId) ? tagOf(keys, list, internalId) : null
  if (right === null || tag.length !== right.length || !timingSafeEqual(tag, right)) {
    throw new ServiceError('cursor_invalid', {
      start: ['Take it from the answer before, unchanged.'],
    })
  }
  return internalId
}

/** Cannot collide with a fingerprint scope: those are names of token types. */
const SCOPE = 'cursor of a list'
const TAG_CHARS = 24

function tagOf(keys: TenantKeys, list: string, internalId: string): Buffer {
  const text = JSON.stringify([list, internalId])
  return Buffer.from(keys.fingerprint(SCOPE, new Sensitive(text)).slice(0, TAG_CHARS))
}

/**
 * Merge patches: combines a token and a patch into the equivalent token request.
 *
 * Source: RFC 7386, and interface.md, Update a token.
 */
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { BODY_BYTES_MAX } from '../base/limits.ts'
import { mergePatch } from '../base/merge-patch.ts'
import { Sensitive } from '../base/sensitive.ts'
import { ServiceError } from '../base/service-error.ts'
import type { FoundToken } from '../ports/stored.ts'
import { findTokenType } from './types/registry.ts'
import { maskOf, patchMembers, refuseEncrypted, requestOf } from './wire.ts'

/** A patch, keyed by member names in snake case. Null removes a member. */
export type TokenPatch = Readonly<Partial<Record<string, Json>>>

/** Throws `token_invalid` if the body is not an object. */
export function parsePatch(body: Json): TokenPatch {
  if (isJsonObject(body)) {
    refuseEncrypted(body, (member) => member)
    return patchMembers(body)
  }
  throw new ServiceError('token_invalid', { error: ['The patch must be an object.'] })
}

/**
 * Returns `token` with `patch` applied, as a token request.
 *
 * Throws `token_data_invalid` if its data would be larger than a request can carry.
 */
export function patchedRequest(
  token: FoundToken,
  data: Sensitive<Json>,
  patch: TokenPatch,
): JsonObject {
  const request: JsonObject = { ...requestOf(token), data: data.reveal() }
  for (const [name, value] of Object.entries(patch)) {
    const whole = name === 'mask' ? maskOf(token) : request[name]
    request[name] = MERGED.has(name) ? mergePatch(whole, value!) : value!
  }
  if (patch['data'] !== undefined && isTooLarge(request['data']!)) {
    throw new ServiceError('token_data_invalid', { data: ['It would be larger than 5 MiB.'] })
  }
  return request
}

/** Whether the patch sets or removes the security code of a card. */
export function touchesShortLived({ type }: FoundToken, { data }: TokenPatch): boolean {
  const member = findTokenType(type)?.shortLived ?? null
  return member !== null && isJsonObject(data) && Object.hasOwn(data, member)
}

/** Members that are merged key by key; all others are replaced. */
const MERGED: ReadonlySet<string> = new Set(['data', 'mask', 'metadata'])

function isTooLarge(data: Json): boolean {
  return Buffer.byteLength(JSON.stringify(data)) > BODY_BYTES_MAX
}

/**
 * Seals token data into envelopes and opens them: one of the few files that handle plaintext.
 *
 * A short-lived member of the data (a card's security code) has its own envelope, so that it can be destroyed separately
 * when its hour is over.
 */
import type { Grant } from '../access/authorize.ts'
import { openValue } from '../request/open-value.ts'
import { isJsonObject, type Json } from '../base/json.ts'
import { CVC_LIFETIME_MS } from '../base/limits.ts'
import { Sensitive } from '../base/sensitive.ts'
import type { SealContext, TenantKeys } from '../ports/keyring.ts'
import type { FoundToken, StoredToken } from '../ports/stored.ts'
import type { Draft } from './draft.ts'
import { findTokenType } from './types/registry.ts'

export type SealedData = Pick<StoredToken, 'data' | 'cvc'>

/** Seals the data of `draft` for the token `id`. */
export function sealData(keys: TenantKeys, draft: Draft, id: string, now: number): SealedData {
  const { type, data, options } = draft
  const context = sealContextOf(id, 'data', type.name, options.containers)
  const plain = data.reveal()
  const member = type.shortLived
  const apart = member !== null && isJsonObject(plain) ? plain[member] : undefined
  const rest = withoutShortLived(draft).data.reveal()
  return {
    data: keys.seal(context, new Sensitive(JSON.stringify(rest))),
    cvc:
      typeof apart !== 'string'
        ? null
        : {
            envelope: keys.seal({ ...context, part: 'cvc' }, new Sensitive(apart)),
            expiresAt: now + CVC_LIFETIME_MS,
          },
  }
}

/** Returns `draft` without its short-lived member, or unchanged if it has none. */
export function withoutShortLived(draft: Draft): Draft {
  const member = draft.type.shortLived
  const plain = draft.data.reveal()
  if (member === null || !isJsonObject(plain) || !Object.hasOwn(plain, member)) return draft
  const { [member]: _gone, ...rest } = plain
  return { ...draft, data: new Sensitive<Json>(rest) }
}

/**
 * Opens the token `grant` was given for; a short-lived member past its hour is absent.
 *
 * A grant for this token carries its decision, and every decision reaches the audit log: data opened here is logged before
 * it is shown. Throws `value_unreadable` if the token is damaged or was tampered with, and another error if the grant is
 * for something else.
 */
export function openData(
  keys: TenantKeys,
  token: FoundToken,
  now: number,
  grant: Grant,
): Sensitive<Json> {
  if (grant.internalId !== token.internalId) {
    throw new Error(
      'Cannot open a token: the grant is for another one; call authorize() for this token',
    )
  }
  if (token.data === null) {
    throw new Error('Cannot open a token: it was found without its data; call readGranted()')
  }
  const context = sealContextOf(token.id, 'data', token.type, token.containers)
  const id = token.internalId
  const opened = openValue(keys, context, token.data, { kind: 'token_data', id })
  const data = JSON.parse(opened.reveal()) as Json
  const member = findTokenType(token.type)?.shortLived
  const cvc = token.cvc
  if (typeof member === 'string' && cvc !== null && cvc.expiresAt > now && isJsonObject(data)) {
    const name = { kind: 'security_code', id } as const
    data[member] = openValue(keys, { ...context, part: 'cvc' }, cvc.envelope, name).reveal()
  }
  return new Sensitive(data)
}

function sealContextOf(
  id: string,
  part: string,
  type: string,
  containers: readonly string[],
): SealContext {
  return { id, part, type, containers }
}

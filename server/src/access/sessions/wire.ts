import { z } from 'zod'
import { CONDITION_ATTRIBUTES, CONDITION_OPERATORS, type Rights } from '../../base/access.ts'
import { parseExpiry } from '../../base/expiry.ts'
import { renderInstant } from '../../base/instant.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import {
  NONCE_CHARS_MAX,
  SESSION_CONDITIONS_MAX,
  SESSION_LIFETIME_MS_MAX,
  SESSION_RULES_MAX,
  TOKEN_ID_CHARS_MAX,
} from '../../base/limits.ts'
import { parseBody } from '../../request/parse.ts'
import { PERMISSIONS } from '../../base/permission-table.ts'
import { parseSessionGrants } from './session-grants.ts'
import { expiry, permissionName, refuseIfAny, ruleMembers } from '../applications/wire.ts'
import { text } from '../../request/text-length.ts'

/**
 * Wire format of sessions.
 *
 * Source: interface.md, Sessions.
 */
const conditionBody = z
  .object({
    attribute: z.enum(CONDITION_ATTRIBUTES),
    operator: z.enum(CONDITION_OPERATORS),
    value: text({ min: 1, max: TOKEN_ID_CHARS_MAX }),
  })
  .meta({ id: 'Condition', description: 'What must be true of a token for a rule to hold.' })

const sessionRuleBody = z
  .object({
    ...ruleMembers,
    container: z.string().nullish(),
    conditions: z.array(conditionBody).max(SESSION_CONDITIONS_MAX).nullish(),
  })
  .meta({
    id: 'SessionRule',
    description: 'Permissions on a container and all below it, or where all conditions are met.',
  })

export const authorizeSessionBody = z
  .object({
    nonce: text({ min: 1, max: NONCE_CHARS_MAX }),
    permissions: z.array(permissionName).max(PERMISSIONS.length).optional(),
    rules: z.array(sessionRuleBody).max(SESSION_RULES_MAX).optional(),
    expires_at: expiry
      .optional()
      .meta({ description: 'When the session ends; an hour from now at the latest.' }),
  })
  .meta({
    id: 'AuthorizeSession',
    description: 'Permissions, rules, or both are required.',
    examples: [{ nonce: 'of the answer that opened it', permissions: ['token:create'] }],
  })

export const sessionSchema = z
  .object({
    session_key: z.string().meta({ description: 'Shown once.' }),
    nonce: z
      .string()
      .meta({ description: 'Names the session to the backend that authorizes it. Shown once.' }),
    expires_at: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'Session', description: 'Short-lived rights, in effect once authorized.' })

export interface SessionRequest {
  readonly nonce: string
  readonly rights: Rights
  /** Null keeps the current expiry. */
  readonly expiresAt: number | null
}

/** Throws `body_missing` or `body_invalid`. */
export function parseAuthorizeSession(body: Json | undefined, now: number): SessionRequest {
  const { nonce, expires_at, ...draft } = parseBody(authorizeSessionBody, body)
  const { rights, errors } = parseSessionGrants(draft)
  const expiresAt = expires_at === undefined ? null : parseExpiry(expires_at)!.at
  if (expiresAt !== null && !(expiresAt > now && expiresAt <= now + SESSION_LIFETIME_MS_MAX)) {
    errors['expires_at'] = ['Must be in the future, and within an hour.']
  }
  refuseIfAny(errors)
  return { nonce, rights, expiresAt }
}

export function renderSession(key: string, nonce: string, expiresAt: number): JsonObject {
  return { session_key: key, nonce, expires_at: renderInstant(expiresAt) }
}

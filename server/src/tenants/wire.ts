import { z } from 'zod'
import { askedList, destinations, writtenDestinations } from '../access/applications/allow-lists.ts'
import { refuseIfAny } from '../access/applications/wire.ts'
import type { TenantSettings } from '../base/access.ts'
import { renderInstant } from '../base/instant.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { BODY_BYTES_MAX, NAME_CHARS_MAX, PUBLIC_BODY_BYTES_MAX_MIN } from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import { pageSchema } from '../request/pagination.ts'
import { parseBody } from '../request/parse.ts'
import type { StoredTenant, TokenUsage } from '../ports/stored.ts'
import { text } from '../request/text-length.ts'

/**
 * Wire format of tenants and their reports.
 *
 * Source: interface.md, Tenants.
 */
export interface TenantChange {
  readonly name: string
  /** The settings in the request, and the destinations if they are in it. */
  readonly settings: Partial<TenantSettings>
}

/** Every setting of the member `settings`, by its wire name. */
const SETTINGS = {
  fingerprint_tokens: 'fingerprintTokens',
  deduplicate_tokens: 'deduplicateTokens',
  deduplicate_public: 'deduplicatePublic',
  deduplicate_unreadable: 'deduplicateUnreadable',
  public_body_bytes_max: 'publicBodyBytesMax',
} as const satisfies Record<string, keyof TenantSettings>

const SETTINGS_MEAN =
  'Whether tokens get fingerprints and are deduplicated unasked; whether public applications find duplicates at all, and ' +
  'private ones those that they may not read; how many bytes the body of a request with a public key may have.'

function eachSetting<Flag, Amount>(flag: Flag, amount: Amount) {
  return {
    fingerprint_tokens: flag,
    deduplicate_tokens: flag,
    deduplicate_public: flag,
    deduplicate_unreadable: flag,
    public_body_bytes_max: amount,
  } satisfies Record<keyof typeof SETTINGS, Flag | Amount>
}

const UNCHANGED = { description: 'Stays as it is when it is left out.' }

const flag = z.enum(['true', 'false']).or(z.boolean()).nullish().meta(UNCHANGED)

/** A number, or a string of its digits: values of settings are strings. */
const bytes = z
  .union([z.int(), z.string().regex(/^[1-9]\d{0,8}$/)])
  .refine((it) => Number(it) >= PUBLIC_BODY_BYTES_MAX_MIN && Number(it) <= BODY_BYTES_MAX, {
    error: `Must be a number from ${PUBLIC_BODY_BYTES_MAX_MIN} to ${BODY_BYTES_MAX}.`,
  })
  .nullish()
  .meta(UNCHANGED)

export const updateTenantBody = z
  .object({
    name: text({ min: 1, max: NAME_CHARS_MAX }).regex(
      /^\P{Cc}*$/u,
      'Must not contain control characters.',
    ),
    settings: z.strictObject(eachSetting(flag, bytes)).optional().describe(SETTINGS_MEAN),
    destinations: destinations
      .optional()
      .meta({ description: 'Absent for as they are; null for any.' }),
  })
  .meta({
    id: 'UpdateTenant',
    description: 'A new name, and settings and destinations that are to change.',
  })

const flagShown = z.enum(['true', 'false'])
const bytesShown = z.string().regex(/^\d+$/)

export const tenantSchema = z
  .object({
    id: z.uuid(),
    owner_id: z.string(),
    name: z.string(),
    settings: z.object(eachSetting(flagShown, bytesShown)).describe(SETTINGS_MEAN),
    destinations: destinations.optional().meta({
      description: 'The only hosts that anything is sent to for its applications; absent for any.',
    }),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
    modified_by: z.string().optional(),
    modified_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'Tenant', description: 'To whom everything belongs.' })

export const usageReportSchema = z
  .object({
    token_report: z.object({
      metrics_by_type: z.record(
        z.string(),
        z.object({ count: z.int(), last_created_at: z.iso.datetime({ offset: true }) }),
      ),
      included_monthly_active_tokens: z.int(),
      monthly_active_tokens: z.int(),
      total_tokens: z.int(),
    }),
    total_tokens: z.int().meta({ description: 'The same as in `token_report`.' }),
  })
  .meta({ id: 'UsageReport', description: 'How many tokens there are.' })

/** A list that stays empty: people have no accounts here. */
export const emptyPageSchema = pageSchema(z.never())

/** Throws `body_missing` or `body_invalid`. */
export function parseUpdateTenant(body: Json | undefined): TenantChange {
  refuseUnknownSettings(body)
  const { name, settings = {}, ...rest } = parseBody(updateTenantBody, body)
  const change: Record<string, boolean | number | readonly string[] | null> = {}
  for (const [written, known] of Object.entries(SETTINGS)) {
    const value = settings[written as keyof typeof SETTINGS]
    if (value === undefined || value === null) continue
    change[known] =
      known === 'publicBodyBytesMax' ? Number(value) : value === true || value === 'true'
  }
  const asked = askedList(body, 'destinations', rest.destinations, undefined)
  const errors: Record<string, string[]> = {}
  if (asked !== undefined) change['destinations'] = writtenDestinations(asked, errors)
  refuseIfAny(errors)
  return { name, settings: change }
}

export function renderTenant(tenant: StoredTenant): JsonObject {
  const { modifiedBy, modifiedAt } = tenant
  const { destinations: listed } = tenant.settings
  return {
    id: tenant.id,
    owner_id: tenant.createdBy,
    name: tenant.name,
    settings: Object.fromEntries(
      Object.entries(SETTINGS).map(([written, known]) => [written, String(tenant.settings[known])]),
    ),
    ...(listed === null ? {} : { destinations: [...listed] }),
    created_by: tenant.createdBy,
    created_at: renderInstant(tenant.createdAt),
    ...(modifiedBy === null ? {} : { modified_by: modifiedBy }),
    ...(modifiedAt === null ? {} : { modified_at: renderInstant(modifiedAt) }),
  }
}

export function renderUsageReport(usage: readonly TokenUsage[]): JsonObject {
  const active = usage.reduce((sum, it) => sum + it.active, 0)
  const total = usage.reduce((sum, it) => sum + it.count, 0)
  return {
    token_report: {
      metrics_by_type: Object.fromEntries(
        usage.map(({ type, count, lastCreatedAt }) => [
          type,
          { count, last_created_at: renderInstant(lastCreatedAt) },
        ]),
      ),
      // Usage is not metered, so all of them are included.
      included_monthly_active_tokens: active,
      monthly_active_tokens: active,
      total_tokens: total,
    },
    total_tokens: total,
  }
}

/** Refuses unknown settings: ignoring one would let the caller believe it is in force. The message does not repeat its name. */
function refuseUnknownSettings(body: Json | undefined): void {
  const settings = isJsonObject(body) ? body['settings'] : undefined
  if (!isJsonObject(settings)) return
  if (Object.keys(settings).every((it) => Object.hasOwn(SETTINGS, it))) return
  const known = Object.keys(SETTINGS).join(', ')
  throw new ServiceError('body_invalid', {
    settings: [`Holds a setting that there is not; there are ${known}.`],
  })
}

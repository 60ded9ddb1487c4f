/**
 * The wire format of tokens: snake_case in, snake_case out.
 *
 * Source: interface.md, Token, and Tokens.
 */
import { z } from 'zod'
import { CONTAINER_FORM, parseContainer } from '../access/container.ts'
import { isLongerThan } from '../base/characters.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { readableExpiry } from '../base/expiry.ts'
import { renderInstant } from '../base/instant.ts'
import {
  CONTAINERS_MAX,
  ENCRYPTION_CHARS_MAX,
  EXPRESSION_CHARS_MAX,
  FINGERPRINT_EXPRESSION_CHARS_MAX,
  METADATA_ENTRIES_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_VALUE_CHARS_MAX,
  SEARCH_INDEXES_MAX,
  TOKEN_ID_CHARS_MAX,
  TOKEN_ID_CHARS_MIN,
} from '../base/limits.ts'
import { ServiceError } from '../base/service-error.ts'
import type { FoundToken } from '../ports/stored.ts'
import { TOKEN_TYPES, findTokenType } from './types/registry.ts'
import type { TokenType } from './types/token-type.ts'
import { text } from '../request/text-length.ts'

const anyJson = z.any().meta({ description: 'Any JSON value.' })

/** The data of a token is never null. */
const anyData = z.any().meta({
  type: ['object', 'array', 'string', 'number', 'boolean'],
  description: 'Any JSON value except null.',
})

const container = z
  .string()
  .meta({ examples: ['/pci/high/'] })
  .transform((text, context) => {
    const path = parseContainer(text)
    if (path !== null) return path
    context.addIssue({ code: 'custom', message: `Each container must be ${CONTAINER_FORM}.` })
    return z.NEVER
  })

/** Objects are checked and kept as sent: a Zod record would drop the key `__proto__`. */
const anyObject = z
  .custom<JsonObject>(isJsonObject, 'Must be an object.')
  .meta({ type: 'object', additionalProperties: true })

const metadata = z
  .custom<Record<string, string>>(isJsonObject, 'Metadata must be an object of strings.')
  .superRefine((entries, context) => {
    const names = Object.keys(entries)
    if (names.length > METADATA_ENTRIES_MAX) {
      context.addIssue(`At most ${METADATA_ENTRIES_MAX} metadata entries.`)
      // Reporting each of half a million issues would block the event loop for seconds.
      return
    }
    for (const name of names) {
      const message = metadataFault(name, entries[name])
      if (message !== null) context.addIssue({ code: 'custom', message, path: [name] })
    }
  })
  .meta({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Not secret: stored and returned as sent.',
  })

function metadataFault(name: string, value: unknown): string | null {
  if (isLongerThan(name, METADATA_KEY_CHARS_MAX)) {
    return `The name must have at most ${METADATA_KEY_CHARS_MAX} characters.`
  }
  if (typeof value !== 'string') return 'Metadata values must be strings.'
  return isLongerThan(value, METADATA_VALUE_CHARS_MAX)
    ? `At most ${METADATA_VALUE_CHARS_MAX} characters.`
    : null
}

const privacy = z.object({
  classification: z.enum(['general', 'bank', 'pci', 'pii']).optional(),
  impact_level: z.enum(['low', 'moderate', 'high']).optional(),
  restriction_policy: z.enum(['mask', 'redact']).optional(),
})

const EXPIRES_AT = '2030-08-26T19:23:57-07:00'

/** Options a token request may have beside its type and data. */
export const tokenOptions = z.object({
  id: text({ min: TOKEN_ID_CHARS_MIN, max: TOKEN_ID_CHARS_MAX })
    .optional()
    .meta({
      description: 'An id of your own, or an alias expression.',
      examples: ['customer 17', '{{ data | alias_preserve_length }}'],
    }),
  containers: z
    .array(container)
    .min(1, 'Name at least one container, or leave containers out.')
    .max(CONTAINERS_MAX, `At most ${CONTAINERS_MAX} containers.`)
    .optional(),
  mask: anyJson.optional().meta({
    description: 'What masked readers see: any JSON whose strings may be expressions.',
    examples: ['{{ data | stringify | reveal_last: 4 }}'],
  }),
  metadata: metadata.optional(),
  search_indexes: z
    .array(text({ max: EXPRESSION_CHARS_MAX }).meta({ examples: ['{{ data | last4 }}'] }))
    .max(SEARCH_INDEXES_MAX, `At most ${SEARCH_INDEXES_MAX} search indexes.`)
    .optional(),
  fingerprint_expression: text({ max: FINGERPRINT_EXPRESSION_CHARS_MAX })
    .optional()
    .meta({ examples: ['{{ data | stringify }}'] }),
  deduplicate_token: z
    .boolean()
    .optional()
    .describe(
      'Without effect for a caller that finds no duplicates, such as a public application.',
    ),
  expires_at: z
    .string()
    .optional()
    .meta({ examples: [EXPIRES_AT] }),
  encryption: anyObject
    .refine(
      (it) => !isLongerThan(JSON.stringify(it), ENCRYPTION_CHARS_MAX),
      `At most ${ENCRYPTION_CHARS_MAX} characters of JSON.`,
    )
    .optional()
    .describe('Kept and returned as sent.'),
  privacy: privacy.optional().describe('Deprecated: name containers instead.'),
})

export type TokenOptionsWire = z.output<typeof tokenOptions>

export const tokenRequest = z
  .object({
    type: z.enum(TOKEN_TYPES.map((it) => it.name) as [string, ...string[]]).default('token'),
    data: anyData.describe(
      'For `token`, any JSON value except null; for other types, the data they require.',
    ),
    ...tokenOptions.shape,
  })
  .meta({
    id: 'TokenRequest',
    examples: [
      { data: 'Ada Lovelace' },
      { type: 'card', data: { number: '4242424242424242', cvc: '123' } },
      { type: 'social_security_number', data: '123-45-6789' },
    ],
  })

const instant = z.iso.datetime({ offset: true })

export const tokenObject = z
  .object({
    id: z.string(),
    tenant_id: z.uuid(),
    type: z.string(),
    data: anyData.optional().describe('The part that the caller may see.'),
    mask: anyData.optional(),
    metadata: metadata.optional(),
    fingerprint: z.string().optional(),
    fingerprint_expression: z.string().optional(),
    search_indexes: z.array(z.string()).optional(),
    containers: z.array(z.string()),
    expires_at: z.string().optional(),
    created_by: z.string().optional(),
    created_at: instant.optional(),
    modified_by: z.string().optional(),
    modified_at: instant.optional(),
    encryption: anyObject.optional().describe('As sent.'),
    privacy: privacy.required().optional().describe('Only if the operator enables it.'),
    _extras: z
      .object({
        deduplicated: z.boolean().describe('Whether the token existed already.'),
        unreadable: z
          .literal(true)
          .optional()
          .describe('In lists: the stored data is damaged, so `data` is missing.'),
      })
      .optional(),
  })
  .meta({ id: 'Token' })

export const detokenizePayload = anyJson.meta({
  id: 'DetokenizePayload',
  description: 'Any JSON, with expressions such as `{{ id }}` or `{{ token: id }}` in its strings.',
})

export const tokenizePayload = anyJson.meta({
  id: 'TokenizePayload',
  examples: [
    { first_name: 'Ada', age: 36 },
    { ssn: { type: 'social_security_number', data: '123-45-6789' }, nickname: null },
    'Ada Lovelace',
  ],
  description:
    'Objects, arrays, strings and token requests, nested as you like. Every string becomes a generic token; every object with `type` and `data` becomes a token of that type.',
})

export const tokenizeAnswer: z.ZodType = z
  .lazy(() => tokenizedValue)
  .meta({
    id: 'TokenizeAnswer',
    description:
      'The payload with a token id for each plain value and a token for each token request.',
  })

const tokenizedValue = z.union([
  tokenObject,
  z.string().describe('The id of a token.'),
  z.null(),
  z.array(tokenizeAnswer),
  z.record(z.string(), tokenizeAnswer),
])

/** The JavaScript client passes these to tokenize as its users write them. */
const CAMEL_CASE: Readonly<Record<string, string>> = {
  searchIndexes: 'search_indexes',
  fingerprintExpression: 'fingerprint_expression',
  deduplicateToken: 'deduplicate_token',
  expiresAt: 'expires_at',
}

/**
 * Throws `token_invalid` if a token request or a patch has `encrypted`: data encrypted for a hosted service, which would be
 * dropped like any unknown member, and be missed later.
 */
export function refuseEncrypted(request: JsonObject, pathOf: (member: string) => string): void {
  if (request['encrypted'] === undefined || request['encrypted'] === null) return
  throw new ServiceError('token_invalid', {
    [pathOf('encrypted')]: ['Encrypted requests are not supported: send the data itself in data.'],
  })
}

/** Returns the option members of a token request, renamed and without nulls, or null if it has none. */
export function optionMembers(request: JsonObject): JsonObject | null {
  let members: JsonObject | null = null
  for (const name of Object.keys(request)) {
    if (name === 'type' || name === 'data' || request[name] === null) continue
    const known = CAMEL_CASE[name] ?? name
    if (!Object.hasOwn(tokenOptions.shape, known)) continue
    members ??= {}
    members[known] = request[name]!
  }
  return members
}

/** Members a patch may have; others in the body, such as the id, are ignored. */
export const tokenPatch = z
  .object({
    data: anyData.optional(),
    ...Object.fromEntries(
      Object.entries(tokenOptions.omit({ id: true }).shape).map(([name, it]) => [
        name,
        it.nullable(),
      ]),
    ),
    metadata: metadata
      .meta({
        type: 'object',
        additionalProperties: { type: ['string', 'null'] },
        description: 'Merged into what there is; null takes an entry away.',
      })
      .nullable()
      .optional(),
  })
  .meta({ id: 'TokenPatch' })

/** Returns the members of a patch, renamed, with nulls. */
export function patchMembers(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body)
      .map(([name, value]) => [CAMEL_CASE[name] ?? name, value] as const)
      .filter(([name]) => Object.hasOwn(tokenPatch.shape, name)),
  )
}

/** Returns the request that would create `token`, without its data. */
export function requestOf(token: FoundToken): JsonObject {
  const request: JsonObject = {
    ...token.details,
    type: token.type,
    containers: [...token.containers],
    deduplicate_token: token.deduplicate,
  }
  if (token.metadata !== null) request['metadata'] = { ...token.metadata }
  const expiry = request['expires_at']
  if (typeof expiry === 'string') request['expires_at'] = readableExpiry(expiry)
  return request
}

/** Returns the options that are stored to be returned later, or null if there are none. */
export function keptDetails(
  options: TokenOptionsWire,
  expiresAt: string | null,
): JsonObject | null {
  const details: JsonObject = {}
  if (options.mask !== undefined) details['mask'] = options.mask as Json
  if (options.search_indexes !== undefined) details['search_indexes'] = options.search_indexes
  if (options.fingerprint_expression !== undefined) {
    details['fingerprint_expression'] = options.fingerprint_expression
  }
  if (options.encryption !== undefined) details['encryption'] = options.encryption
  if (options.privacy !== undefined) details['privacy'] = options.privacy as JsonObject
  if (expiresAt !== null) details['expires_at'] = expiresAt
  return Object.keys(details).length === 0 ? null : details
}

/** Returns the mask expressions of a token, its own or its type's; null if it has none. */
export function maskOf(token: FoundToken): Json {
  return token.details?.['mask'] ?? findTokenType(token.type)?.mask ?? null
}

export interface RenderOptions {
  readonly tenantId: string
  /** The data member: plaintext, masked, or undefined for none. */
  readonly data: Json | undefined
  /** The mask member: its expressions on /tokens, its value at the root of /tokenize. */
  readonly mask: Json | undefined
  /** Whether to show the deprecated `privacy` member. */
  readonly privacy: boolean
  /** Undefined leaves `_extras` out. */
  readonly deduplicated: boolean | undefined
  /** Whether the token's data is damaged; shown in `_extras`. */
  readonly unreadable?: boolean
}

/** Renders a token. Members without a value are omitted, never null. */
export function renderToken(token: FoundToken, shown: RenderOptions): JsonObject {
  const type = findTokenType(token.type)
  const details = token.details
  const wire: JsonObject = { id: token.id, tenant_id: shown.tenantId, type: token.type }
  // A token's data is never null, so null here is the result of a mask.
  if (shown.data !== undefined && shown.data !== null) wire['data'] = shown.data
  if (shown.mask !== undefined && shown.mask !== null) wire['mask'] = shown.mask
  if (token.metadata !== null) wire['metadata'] = { ...token.metadata }
  if (token.fingerprint !== null) wire['fingerprint'] = token.fingerprint
  const expression =
    details?.['fingerprint_expression'] ??
    (type?.fingerprintExpressionShown === true ? type.fingerprintExpression : undefined)
  if (expression !== undefined) wire['fingerprint_expression'] = expression
  const indexes = details?.['search_indexes'] ?? impliedIndexes(type)
  if (indexes !== undefined) wire['search_indexes'] = [...(indexes as readonly Json[])]
  wire['containers'] = [...token.containers]
  const expiry = details?.['expires_at'] as string | undefined
  if (expiry !== undefined) wire['expires_at'] = readableExpiry(expiry)
  wire['created_by'] = token.createdBy
  wire['created_at'] = renderInstant(token.createdAt)
  if (token.modifiedBy !== null) wire['modified_by'] = token.modifiedBy
  if (token.modifiedAt !== null) wire['modified_at'] = renderInstant(token.modifiedAt)
  if (details?.['encryption'] !== undefined) wire['encryption'] = details['encryption']
  if (shown.privacy) wire['privacy'] = renderPrivacy(token)
  if (shown.deduplicated !== undefined) {
    wire['_extras'] = {
      deduplicated: shown.deduplicated,
      ...(shown.unreadable === true && { unreadable: true }),
    }
  }
  return wire
}

/** Returns the type's own search indexes; undefined if it has none. A list that was sent is shown even if empty. */
function impliedIndexes(type: TokenType | undefined): readonly string[] | undefined {
  const indexes = type?.searchIndexes ?? []
  return indexes.length > 0 ? indexes : undefined
}

/** Renders a token that deduplication matched but the caller may not read. */
export function renderDuplicate(token: FoundToken, tenantId: string): JsonObject {
  const wire: JsonObject = { id: token.id, tenant_id: tenantId, type: token.type }
  if (token.fingerprint !== null) wire['fingerprint'] = token.fingerprint
  wire['containers'] = [...token.containers]
  wire['_extras'] = { deduplicated: true }
  return wire
}

/** Returns the container requested by the deprecated `privacy` member, or null. */
export function privacyContainer(options: TokenOptionsWire, typeName: string): string | null {
  const sent = options.privacy
  if (sent === undefined) return null
  const implied = findTokenType(typeName)!.privacy
  return `/${sent.classification ?? implied.classification}/${sent.impact_level ?? implied.impactLevel}/`
}

function renderPrivacy(token: FoundToken): JsonObject {
  const sent = token.details?.['privacy']
  const implied = findTokenType(token.type)!.privacy
  const policy = maskOf(token) === null ? 'redact' : 'mask'
  return {
    classification: implied.classification,
    impact_level: implied.impactLevel,
    restriction_policy: policy,
    ...(isJsonObject(sent) ? sent : {}),
  }
}

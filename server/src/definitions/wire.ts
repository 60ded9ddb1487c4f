import { z } from 'zod'
import { renderInstant } from '../base/instant.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import {
  CONFIGURATION_ENTRIES_MAX,
  CONFIGURATION_KEY_CHARS_MAX,
  CONFIGURATION_VALUE_CHARS_MAX,
  NAME_CHARS_MAX,
  NAME_FILTER_CHARS_MAX,
} from '../base/limits.ts'
import { isLongerThan } from '../base/characters.ts'
import { SECRET_PLACEHOLDER, secretIn } from '../base/secret-value.ts'
import { ServiceError } from '../base/service-error.ts'
import type { DefinitionFilter } from '../ports/store.ts'
import type { StoredDefinition } from '../ports/stored.ts'
import type { QueryParameters } from '../request/query.ts'
import { pageQuery } from '../request/pagination.ts'
import { text } from '../request/text-length.ts'

/**
 * Schemas and parsing that proxies and reactors share: names, and lists filtered by id and by name.
 *
 * Source: interface.md, Proxies, and Reactors.
 */
export const definitionName = text({ min: 1, max: NAME_CHARS_MAX }).regex(
  /^\P{Cc}*$/u,
  'Must not contain control characters.',
)

/** Id of the application it acts for; null or empty for none, since clients send all their members, including empty ones. */
export const actingApplication = z
  .object({ id: z.string().nullish() })
  .optional()
  .meta({ description: 'A private or public application of the tenant; with no id, none.' })

export const definitionsQuery = pageQuery.extend({
  id: z.array(z.string()).optional().meta({ description: 'Only these; may be repeated.' }),
  name: text({ max: NAME_FILTER_CHARS_MAX })
    .optional()
    .meta({ description: 'A part of the name, or a pattern with * and ?; whatever the case.' }),
})

/**
 * Returns the schema of a configuration: `what` by name, each accepted if it is a secret or `faultOf` finds no fault with it.
 * Checked and kept as sent: a Zod record would leave out the key `__proto__`.
 */
export function configurationOf(
  what: string,
  schema: Record<string, unknown> | true,
  faultOf: (value: Json) => string | null,
) {
  return z
    .custom<JsonObject>(isJsonObject, `Must be an object of ${what}.`)
    .superRefine((entries, context) => {
      const names = Object.keys(entries)
      if (names.length > CONFIGURATION_ENTRIES_MAX) {
        context.addIssue(`At most ${CONFIGURATION_ENTRIES_MAX} entries.`)
        return
      }
      for (const name of names) {
        const value = entries[name]!
        const message =
          entryFault(name, value) ?? (secretIn(value) === null ? faultOf(value) : null)
        if (message !== null) context.addIssue({ code: 'custom', message, path: [name] })
      }
    })
    .meta({
      type: 'object',
      additionalProperties: schema,
      description:
        `Up to ${CONFIGURATION_ENTRIES_MAX} ${what} by name, stored encrypted. A value {"secret": "..."} is write-only: ` +
        `answers show ${SECRET_PLACEHOLDER} instead, which keeps the secret when it is sent back.`,
    })
}

/** The schema of a secret, for the OpenAPI document. */
export const SECRET_SCHEMA = {
  type: 'object',
  properties: { secret: { type: 'string' } },
  required: ['secret'],
  additionalProperties: false,
}

function entryFault(name: string, value: Json): string | null {
  if (isLongerThan(name, CONFIGURATION_KEY_CHARS_MAX)) {
    return `The name must have at most ${CONFIGURATION_KEY_CHARS_MAX} characters.`
  }
  const text = secretIn(value) ?? value
  const written = typeof text === 'string' ? text : JSON.stringify(text)
  if (!isLongerThan(written, CONFIGURATION_VALUE_CHARS_MAX)) return null
  return `At most ${CONFIGURATION_VALUE_CHARS_MAX} characters.`
}

/**
 * Returns the schema of a merge patch, for the OpenAPI document: null resets what may be absent, and removes an entry of the
 * configuration; nothing else may be null. The definition that results is parsed, not the patch.
 */
export function patchOf(
  body: { readonly shape: Readonly<Record<string, z.ZodType>> },
  entries: Record<string, unknown> | true,
): z.ZodObject {
  const shape: Record<string, z.ZodType> = {}
  for (const [name, schema] of Object.entries(body.shape)) {
    const member =
      name === 'configuration' ? schema.meta({ additionalProperties: entries }) : schema
    const resettable = schema.isOptional() && !schema.isNullable()
    shape[name] = resettable ? member.nullish() : member.optional()
  }
  return z.object(shape)
}

/** Throws `query_invalid`. */
export function parseDefinitionFilter(query: QueryParameters): DefinitionFilter {
  const ids = query.get('id')
  const names = query.get('name')?.filter((it) => it !== '') ?? []
  if (names.length > 1 || names.some((it) => isLongerThan(it, NAME_FILTER_CHARS_MAX))) {
    const message = `Give it once, with at most ${NAME_FILTER_CHARS_MAX} characters.`
    throw new ServiceError('query_invalid', { name: [message] })
  }
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(names[0] === undefined ? {} : { name: names[0] }),
  }
}

const instant = z.iso.datetime({ offset: true })

export const unreadableDefinitionSchema = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    state: z.literal('active'),
    created_by: z.string(),
    created_at: instant,
    modified_by: z.string().optional(),
    modified_at: instant.optional(),
    _extras: z.object({ unreadable: z.literal(true) }),
  })
  .meta({
    id: 'Unreadable',
    description: 'An item of a list whose stored configuration is damaged.',
  })

/** Renders the author and the last editor of a definition, with the times. */
export function renderAuthorship(definition: StoredDefinition): JsonObject {
  const { modifiedBy, modifiedAt } = definition
  return {
    created_by: definition.createdBy,
    created_at: renderInstant(definition.createdAt),
    ...(modifiedBy === null ? {} : { modified_by: modifiedBy }),
    ...(modifiedAt === null ? {} : { modified_at: renderInstant(modifiedAt) }),
  }
}

/** Renders a definition whose configuration cannot be decrypted, for lists. */
export function renderUnreadable(tenantId: string, definition: StoredDefinition): JsonObject {
  const { id, name } = definition
  const made = renderAuthorship(definition)
  return { id, tenant_id: tenantId, name, state: 'active', ...made, _extras: { unreadable: true } }
}

import { z } from 'zod'
import {
  APPLICATION_TYPES,
  TRANSFORMS,
  type AccessRule,
  type ApplicationType,
} from '../../base/access.ts'
import { EXPIRY_FORM, parseExpiry, renderExpiry } from '../../base/expiry.ts'
import { renderInstant } from '../../base/instant.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { NAME_CHARS_MAX, RULES_MAX } from '../../base/limits.ts'
import { ServiceError, type MemberErrors } from '../../base/service-error.ts'
import type { QueryParameters } from '../../request/query.ts'
import { pageQuery, pageSchema } from '../../request/pagination.ts'
import { parseBody } from '../../request/parse.ts'
import type { ApplicationFilter } from '../../ports/store.ts'
import type { StoredApplication, StoredApplicationKey } from '../../ports/stored.ts'
import { CONTAINER_FORM } from '../container.ts'
import { parseGrants, type Grants } from '../grants.ts'
import { PERMISSIONS, type PermissionEntry } from '../../base/permission-table.ts'
import { text } from '../../request/text-length.ts'
import {
  allowedOrigins,
  allowedOriginsOf,
  askedList,
  destinations,
  destinationsOf,
} from './allow-lists.ts'

/**
 * Wire format of applications, their keys and permissions.
 *
 * Requests are parsed into internal types, objects are rendered with their members in the order of the interface; absent members
 * are left out, never null.
 *
 * Source: interface.md, Applications.
 */

/** Members a caller may set when it creates an application. */
export interface ApplicationDraft extends ApplicationChange {
  readonly type: ApplicationType
  readonly expiresAt: number | null
  readonly createKey: boolean
}

/** Members a caller may set later on. */
export interface ApplicationChange extends Grants {
  readonly name: string
  readonly destinations: readonly string[] | null
  readonly allowedOrigins: readonly string[] | null
}

const applicationType = z.enum(APPLICATION_TYPES)

export const permissionName = z.string().meta({
  description: 'One of GET /permissions.',
  examples: ['token:create'],
})

/** No control characters in a line of text: a database cannot store a NUL. */
const ONE_LINE = /^\P{Cc}*$/u
const name = text({ min: 1, max: NAME_CHARS_MAX }).regex(
  ONE_LINE,
  'Must not contain control characters.',
)
const description = text({ max: NAME_CHARS_MAX }).regex(
  ONE_LINE,
  'Must not contain control characters.',
)

/** Members that rules of applications and of sessions share. */
export const ruleMembers = {
  description: description.nullish(),
  priority: z.int().min(1).meta({ description: 'Unique; the lowest number is asked first.' }),
  transform: z.enum(TRANSFORMS),
  permissions: z.array(permissionName).min(1).max(PERMISSIONS.length),
}

const container = z.string().meta({
  description: `Covers all below it: ${CONTAINER_FORM}.`,
  examples: ['/pci/high/'],
})

const ruleBody = z
  .object({
    description: ruleMembers.description,
    priority: ruleMembers.priority,
    container,
    transform: ruleMembers.transform,
    permissions: ruleMembers.permissions,
    conditions: z
      .array(z.unknown())
      .max(0, 'Conditions are for sessions; a rule of an application has a container.')
      .nullish(),
  })
  .meta({ id: 'AccessRuleRequest', description: 'Permissions on a container and all below it.' })

const ruleSchema = z
  .object({ ...ruleMembers, description: description.optional(), container })
  .meta({ id: 'AccessRule', description: 'Permissions on a container and all below it.' })

const grants = {
  permissions: z
    .array(permissionName)
    .max(PERMISSIONS.length)
    .optional()
    .meta({ description: 'Granted on every container.' }),
  rules: z.array(ruleBody).max(RULES_MAX).optional(),
}

/** In every form of a token's expiry: parseExpiry() reads it. */
export const expiry = z
  .string()
  .refine((text) => parseExpiry(text) !== null, `Must be ${EXPIRY_FORM}.`)
  .meta({ examples: ['2030-08-26T19:23:57-07:00'] })

export const createApplicationBody = z
  .object({
    name,
    type: applicationType,
    ...grants,
    destinations: destinations.optional().meta({ description: 'Absent for any.' }),
    allowed_origins: allowedOrigins
      .optional()
      .meta({ description: 'Only of a public application; absent for any.' }),
    expires_at: expiry
      .optional()
      .meta({ description: 'From then on the application and its keys are gone.' }),
    create_key: z.boolean().optional().meta({ description: 'False for none; default true.' }),
  })
  .meta({
    id: 'CreateApplication',
    description: 'Permissions, rules, or both are required.',
    examples: [
      { name: 'Backend', type: 'private', permissions: ['token:create', 'token:read'] },
      { name: 'Shop', type: 'public', permissions: ['token:create'] },
    ],
  })

export const updateApplicationBody = z
  .object({
    name,
    type: applicationType.optional().meta({ description: 'Fixed: as it is, or absent.' }),
    ...grants,
    destinations: destinations
      .optional()
      .meta({ description: 'Absent for as they are; null for any.' }),
    allowed_origins: allowedOrigins
      .optional()
      .meta({ description: 'Absent for as they are; null for any.' }),
  })
  .meta({
    id: 'UpdateApplication',
    description: 'Replaces name, permissions and rules.',
    examples: [{ name: 'Backend', permissions: ['token:create'] }],
  })

export const applicationSchema = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    key: z.string().optional().meta({ description: 'Only where it was just made: shown once.' }),
    type: applicationType,
    permissions: z.array(permissionName),
    rules: z.array(ruleSchema),
    destinations: destinations
      .optional()
      .meta({ description: 'The only hosts that proxies may send to for it; absent for any.' }),
    allowed_origins: allowedOrigins
      .optional()
      .meta({ description: 'The only origins whose pages may use its keys; absent for any.' }),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
    modified_by: z.string().optional(),
    modified_at: z.iso.datetime({ offset: true }).optional(),
    expires_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'Application', description: 'Who may call, and what it may do.' })

export const applicationPageSchema = pageSchema(applicationSchema)

export const applicationKeySchema = z
  .object({
    id: z.uuid(),
    key: z.string().optional().meta({ description: 'Only where it was just made: shown once.' }),
    version: z.string().meta({ description: 'Which key of the application it is, from "1".' }),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'ApplicationKey', description: 'One of the keys of an application.' })

export const permissionSchema = z
  .object({
    type: permissionName,
    description: z.string(),
    application_types: z.array(applicationType).meta({ description: 'Who may hold it.' }),
  })
  .meta({ id: 'Permission', description: 'Something an application may be allowed to do.' })

export const applicationTemplateSchema = z
  .object({
    id: z.uuid(),
    name: z.string(),
    application_type: applicationType,
    permissions: z.array(permissionName),
  })
  .meta({ id: 'ApplicationTemplate', description: 'There are none in this version.' })

export const listApplicationsQuery = pageQuery.extend({
  id: z.array(z.uuid()).optional().meta({ description: 'May be given several times.' }),
  type: z.array(applicationType).optional().meta({ description: 'May be given several times.' }),
})

export const listPermissionsQuery = z.object({ application_type: applicationType.optional() })

/** Throws `body_missing` or `body_invalid`; `expires_at` must be after `now`. */
export function parseCreateApplication(body: Json | undefined, now: number): ApplicationDraft {
  const { name, type, ...rest } = parseBody(createApplicationBody, body)
  const { grants, errors } = parseGrants(rest, type)
  const destinations = destinationsOf(rest.destinations ?? null, type, errors)
  const allowedOrigins = allowedOriginsOf(rest.allowed_origins ?? null, type, errors)
  const expiresAt = rest.expires_at === undefined ? null : parseExpiry(rest.expires_at)!.at
  if (expiresAt !== null && !(expiresAt > now)) errors['expires_at'] = ['Must be in the future.']
  refuseIfAny(errors)
  return {
    name,
    type,
    ...grants,
    destinations,
    allowedOrigins,
    expiresAt,
    createKey: rest.create_key ?? true,
  }
}

/**
 * Returns `application` with the requested changes. Absent destinations and origins stay: an older client that does not know them
 * sends the rest back, and must not lift a limit by that.
 *
 * Throws `body_missing` or `body_invalid`.
 */
export function parseUpdateApplication(
  body: Json | undefined,
  current: Pick<StoredApplication, 'type' | 'destinations' | 'allowedOrigins'>,
): ApplicationChange {
  const { type } = current
  const { name, ...rest } = parseBody(updateApplicationBody, body)
  const { grants, errors } = parseGrants(rest, type)
  const asked = askedList(body, 'destinations', rest.destinations, current.destinations)
  const destinations = destinationsOf(asked, type, errors)
  const origins = askedList(body, 'allowed_origins', rest.allowed_origins, current.allowedOrigins)
  const allowedOrigins = allowedOriginsOf(origins, type, errors)
  // Ignoring it would let the caller believe that the type was changed.
  if (rest.type !== undefined && rest.type !== type)
    errors['type'] = ['The type cannot be changed.']
  refuseIfAny(errors)
  return { name, ...grants, destinations, allowedOrigins }
}

/** Throws `query_invalid`. */
export function parseApplicationFilter(query: QueryParameters): ApplicationFilter {
  const ids = query.get('id')
  const types = query.get('type')
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(types === undefined ? {} : { types: types.map((it) => parseApplicationType(it, 'type')) }),
  }
}

/** Throws `query_invalid`. */
export function parsePermissionFilter(query: QueryParameters): ApplicationType | null {
  const value = query.get('application_type')?.[0]
  return value === undefined ? null : parseApplicationType(value, 'application_type')
}

export function renderApplication(
  tenantId: string,
  application: StoredApplication,
  key?: string,
): JsonObject {
  const { modifiedBy, modifiedAt, expiresAt, destinations, allowedOrigins } = application
  return {
    id: application.id,
    tenant_id: tenantId,
    name: application.name,
    ...(key === undefined ? {} : { key }),
    type: application.type,
    permissions: [...application.permissions],
    rules: application.rules.map(renderRule),
    ...(destinations === null ? {} : { destinations: [...destinations] }),
    ...(allowedOrigins === null ? {} : { allowed_origins: [...allowedOrigins] }),
    created_by: application.createdBy,
    created_at: renderInstant(application.createdAt),
    ...(modifiedBy === null ? {} : { modified_by: modifiedBy }),
    ...(modifiedAt === null ? {} : { modified_at: renderInstant(modifiedAt) }),
    ...(expiresAt === null ? {} : { expires_at: renderExpiry(expiresAt) }),
  }
}

export function renderApplicationKey(stored: StoredApplicationKey, key?: string): JsonObject {
  return {
    id: stored.id,
    ...(key === undefined ? {} : { key }),
    version: String(stored.version),
    created_by: stored.createdBy,
    created_at: renderInstant(stored.createdAt),
  }
}

export function renderPermission(permission: PermissionEntry): JsonObject {
  return {
    type: permission.type,
    description: permission.description,
    application_types: [...permission.applicationTypes],
  }
}

function parseApplicationType(text: string, parameter: string): ApplicationType {
  const type = APPLICATION_TYPES.find((it) => it === text)
  if (type !== undefined) return type
  throw new ServiceError('query_invalid', {
    [parameter]: [`Must be one of ${APPLICATION_TYPES.join(', ')}.`],
  })
}

/** Throws `body_invalid` if there are errors. */
export function refuseIfAny(errors: MemberErrors): void {
  if (Object.keys(errors).length > 0) throw new ServiceError('body_invalid', errors)
}

function renderRule(rule: AccessRule): JsonObject {
  return {
    ...(rule.description === '' ? {} : { description: rule.description }),
    priority: rule.priority,
    container: rule.container,
    transform: rule.transform,
    permissions: [...rule.permissions],
  }
}

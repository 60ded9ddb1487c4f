import { z } from 'zod'
import { isUnambiguous } from '../../base/absolute-url.ts'
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts'
import { DESTINATION_URL_CHARS_MAX } from '../../base/limits.ts'
import { mergePatch } from '../../base/merge-patch.ts'
import { ServiceError } from '../../base/service-error.ts'
import { patchConfiguration, renderConfiguration } from '../../definitions/secret-configuration.ts'
import { pageSchema } from '../../request/pagination.ts'
import {
  actingApplication,
  configurationOf,
  definitionName,
  patchOf,
  renderAuthorship,
  SECRET_SCHEMA,
  unreadableDefinitionSchema,
} from '../../definitions/wire.ts'
import { parseBody } from '../../request/parse.ts'
import type { StoredProxy } from '../../ports/stored.ts'
import type { SealedProxyConfiguration } from './sealed-proxy-configuration.ts'
import { text } from '../../request/text-length.ts'

/**
 * The wire format of configured proxies.
 *
 * Source: interface.md, Proxies.
 */

/** The members of a proxy that a caller may set. */
export interface ProxyDraft extends Omit<SealedProxyConfiguration, 'key' | 'secrets'> {
  readonly name: string
}

const configuration = configurationOf('strings', { type: 'string' }, (value) =>
  typeof value === 'string' ? null : 'Must be a string, or a secret.',
)

const STRING_OR_SECRET = [{ type: 'string' }, SECRET_SCHEMA]

const destinationUrl = text({ max: DESTINATION_URL_CHARS_MAX })
  .refine(isDestinationUrl, `Must be an https URL of printable ASCII, without user or fragment.`)
  .meta({ examples: ['https://api.example.com/v1'] })

function isDestinationUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || text.includes('#') || !isUnambiguous(text)) return false
  return url.protocol === 'https:' && url.username === '' && url.password === ''
}

/**
 * Unsupported members that would change the forwarded request, or what is shown of it: ignoring them could leak data they
 * were meant to protect.
 */
const undone = z
  .custom<never>((it) => it === undefined || isNothing(it), 'Not done yet: leave it out.')
  .optional()
  .meta({ anyOf: [{ type: 'null' }, { const: false }, { type: 'array', maxItems: 0 }] })

function isNothing(value: unknown): boolean {
  return value === null || value === false || (Array.isArray(value) && value.length === 0)
}

const UNDONE = {
  request_transform: undone,
  response_transform: undone,
  request_transforms: undone,
  response_transforms: undone,
  request_reactor_id: undone,
  response_reactor_id: undone,
  disable_detokenization: undone,
  client_certificate: undone,
}

export const proxyBody = z
  .object({
    name: definitionName,
    destination_url: destinationUrl,
    ...UNDONE,
    application: actingApplication,
    application_id: z.string().optional().meta({ description: 'The same, as answers have it.' }),
    configuration: configuration
      .meta({ additionalProperties: { anyOf: STRING_OR_SECRET } })
      .optional(),
    require_auth: z.boolean().optional().meta({ description: 'Default true.' }),
  })
  .meta({ id: 'ProxyRequest', description: 'Where a proxy forwards requests to.' })

export const proxyPatch = patchOf(proxyBody, {
  anyOf: [...STRING_OR_SECRET, { type: 'null' }],
}).meta({
  id: 'ProxyPatch',
  description: 'The members to change; null removes a member.',
})

export const proxySchema = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    state: z.literal('active'),
    key: z
      .string()
      .optional()
      .meta({ description: 'For the header BT-PROXY-KEY; absent if the caller may not read it.' }),
    destination_url: z.string(),
    application_id: z.uuid().optional(),
    configuration,
    require_auth: z.boolean(),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
    modified_by: z.string().optional(),
    modified_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'Proxy', description: 'A destination that was configured beforehand.' })

export const proxyPageSchema = pageSchema(z.union([proxySchema, unreadableDefinitionSchema]))

/** Throws `body_missing` or `body_invalid`. */
export function parseProxy(body: Json | undefined): ProxyDraft {
  const it = parseBody(proxyBody, body)
  return {
    name: it.name,
    destinationUrl: it.destination_url,
    applicationId: it.application?.id ?? it.application_id ?? null,
    configuration: it.configuration ?? {},
    requireAuth: it.require_auth ?? true,
  }
}

/**
 * Returns the proxy with `patch` applied, as a proxy request, and which names of its configuration the patch does not touch.
 * Throws `body_invalid` if the patch is not an object.
 */
export function patchedProxy(
  proxy: StoredProxy,
  config: SealedProxyConfiguration,
  patch: Json,
): { readonly body: Json; readonly untouched: ReadonlySet<string> } {
  if (!isJsonObject(patch)) {
    throw new ServiceError('body_invalid', { error: ['The patch must be an object.'] })
  }
  const { applicationId, destinationUrl, requireAuth } = config
  // Both names stand for one member.
  const { application_id: flat, configuration, ...rest } = patch
  const named = flat === undefined ? {} : { application: flat === null ? null : { id: flat } }
  const current = {
    name: proxy.name,
    destination_url: destinationUrl,
    ...(applicationId !== null && { application: { id: applicationId } }),
    require_auth: requireAuth,
  }
  const { patched, untouched } = patchConfiguration(config, configuration)
  const merged = Object(mergePatch(current, { ...named, ...rest }))
  return { body: { ...merged, configuration: patched }, untouched }
}

/** The key is rendered unless `keyShown` is false. */
export function renderProxy(
  tenantId: string,
  proxy: StoredProxy,
  config: SealedProxyConfiguration,
  keyShown = true,
): JsonObject {
  const { applicationId } = config
  return {
    id: proxy.id,
    tenant_id: tenantId,
    name: proxy.name,
    // A proxy is usable once created; some tools poll until they see this state.
    state: 'active',
    ...(keyShown && { key: config.key }),
    destination_url: config.destinationUrl,
    ...(applicationId === null ? {} : { application_id: applicationId }),
    configuration: renderConfiguration(config),
    require_auth: config.requireAuth,
    ...renderAuthorship(proxy),
  }
}

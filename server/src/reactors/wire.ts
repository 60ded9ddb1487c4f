import { z } from 'zod'
import { patchConfiguration, renderConfiguration } from '../definitions/secret-configuration.ts'
import { applicationSchema, renderApplication } from '../access/applications/wire.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { REACTOR_CODE_CHARS_MAX } from '../base/limits.ts'
import { mergePatch } from '../base/merge-patch.ts'
import { ServiceError } from '../base/service-error.ts'
import {
  actingApplication,
  configurationOf,
  definitionName,
  patchOf,
  renderAuthorship,
  unreadableDefinitionSchema,
} from '../definitions/wire.ts'
import { pageSchema } from '../request/pagination.ts'
import { parseBody } from '../request/parse.ts'
import type { StoredApplication, StoredReactor } from '../ports/stored.ts'
import type { ReactorSettings } from './reactor-settings.ts'
import type { SealedReactorConfiguration } from './sealed-reactor-configuration.ts'
import { text } from '../request/text-length.ts'

/**
 * The wire format of reactors.
 *
 * Source: interface.md, Reactors.
 */

/** The members of a reactor that a caller may set. */
export interface ReactorDraft extends Omit<SealedReactorConfiguration, 'secrets'> {
  readonly name: string
}

/** A reactor with its configuration opened. */
export interface OpenReactor {
  readonly reactor: StoredReactor
  readonly config: SealedReactorConfiguration
  /** The application it acts for, if it exists. */
  readonly application: StoredApplication | null
}

const configuration = configurationOf('values', true, () => null)

/** Images of a hosted service. Code runs on the Node of the vault, which is what the oldest of them stands for. */
const runtime = z
  .looseObject({ image: z.string().nullish() })
  .nullish()
  .refine(
    (it) => it == null || Object.entries(it).every(([name, value]) => isOwnRuntime(name, value)),
    'Leave it out, or send the image node-bt alone: there is no other runtime, and none of its settings.',
  )
  .meta({ description: 'Only to be accepted where it asks for nothing else than there is.' })

function isOwnRuntime(name: string, value: unknown): boolean {
  return value === null || (name === 'image' && value === 'node-bt')
}

const reactorBody = z.object({
  name: definitionName,
  code: text({ min: 1, max: REACTOR_CODE_CHARS_MAX }).meta({
    description: 'JavaScript that exports a function. Compiled when it runs.',
    examples: ['module.exports = async (req) => ({ raw: req.args })'],
  }),
  configuration: configuration.optional(),
  application: actingApplication,
  runtime,
})

/** Returns the schemas of a reactor request and of a patch, for the OpenAPI document: the operator says what is required. */
export function reactorBodiesFor({ configurationRequired }: ReactorSettings): {
  readonly body: z.ZodType
  readonly patch: z.ZodType
} {
  const body = configurationRequired ? reactorBody.required({ configuration: true }) : reactorBody
  return {
    body: body.meta({ id: 'ReactorRequest', description: 'Code that runs on the data of tokens.' }),
    patch: patchOf(body, true).meta({
      id: 'ReactorPatch',
      description: 'The members to change; null removes a member.',
    }),
  }
}

export const reactorSchema = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    state: z.literal('active'),
    code: z.string(),
    configuration,
    application: applicationSchema.optional(),
    created_by: z.string(),
    created_at: z.iso.datetime({ offset: true }),
    modified_by: z.string().optional(),
    modified_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'Reactor', description: 'Code of the tenant’s own.' })

export const reactorPageSchema = pageSchema(z.union([reactorSchema, unreadableDefinitionSchema]))

/** Throws `body_missing` or `body_invalid`. */
export function parseReactor(
  body: Json | undefined,
  { configurationRequired }: ReactorSettings,
): ReactorDraft {
  const it = parseBody(reactorBody, body)
  if (it.configuration === undefined && configurationRequired) {
    throw new ServiceError('body_invalid', { configuration: ['Required; it may be empty.'] })
  }
  return {
    name: it.name,
    code: it.code,
    configuration: it.configuration ?? {},
    applicationId: it.application?.id ?? null,
  }
}

/**
 * Returns the reactor with `patch` applied, as a reactor request, and which names of its configuration the patch does not touch.
 * Throws `body_invalid` if the patch is not an object.
 */
export function patchedReactor(
  { reactor, config }: OpenReactor,
  patch: Json,
): { readonly body: Json; readonly untouched: ReadonlySet<string> } {
  if (!isJsonObject(patch)) {
    throw new ServiceError('body_invalid', { error: ['The patch must be an object.'] })
  }
  const { code, applicationId } = config
  const current = {
    name: reactor.name,
    code,
    ...(applicationId !== null && { application: { id: applicationId } }),
  }
  const { configuration, ...rest } = patch
  const { patched, untouched } = patchConfiguration(config, configuration)
  return { body: { ...Object(mergePatch(current, rest)), configuration: patched }, untouched }
}

export function renderReactor(
  tenantId: string,
  { reactor, config, application }: OpenReactor,
): JsonObject {
  return {
    id: reactor.id,
    tenant_id: tenantId,
    name: reactor.name,
    state: 'active',
    code: config.code,
    configuration: renderConfiguration(config),
    ...(application === null ? {} : { application: renderApplication(tenantId, application) }),
    ...renderAuthorship(reactor),
  }
}

/**
 * The OpenAPI 3.1 document, made from the endpoint records: what is served is what is described.
 *
 * Schemas with an id (`.meta({ id })`) become named components. Nothing is written twice: the records
 * carry the same Zod schemas that the verbs parse with.
 */
import { z } from 'zod'
import type { JsonObject } from '../base/json.ts'
import type { Endpoint, Operation } from './endpoint.ts'
import { isPassage, type PassageEndpoint } from './passage.ts'

const problem = z
  .looseObject({
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().describe('Stable word for the refusal; docs/errors.md lists them.').optional(),
    errors: z
      .record(z.string(), z.array(z.string()))
      .describe('Dotted path of a member to what is wrong with it.')
      .optional(),
  })
  .meta({ id: 'Problem', description: 'Every error of the service.' })

export function openApiDocument(
  endpoints: readonly (Endpoint | PassageEndpoint)[],
  version: string,
): JsonObject {
  const schemas: JsonObject = {}
  const paths: Record<string, JsonObject> = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:([a-z_]+)/gi, '{$1}')
    const item = (paths[path] ??= {})
    item[endpoint.method.toLowerCase()] = operationOf(endpoint, (schema) => shown(schema, schemas))
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Symbolon',
      version,
      description: 'A self-hosted tokenization vault.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'BT-API-KEY' } },
    },
  }
}

type Show = (schema: z.ZodType) => JsonObject

function operationOf(endpoint: Endpoint | PassageEndpoint, show: Show): JsonObject {
  const operation: JsonObject = {
    operationId: operationIdOf(endpoint),
    summary: endpoint.summary,
    description: permissionText(endpoint),
  }
  if (endpoint.permission === 'public') operation['security'] = []
  const parameters = pathParameters(endpoint.path)
  if (isPassage(endpoint)) {
    operation['requestBody'] = { required: false, content: { '*/*': {} } }
  } else {
    parameters.push(...queryParameters(endpoint, show))
    if (endpoint.body !== undefined) {
      operation['requestBody'] = {
        required: endpoint.body.optional !== true,
        content: { [endpoint.body.contentType]: { schema: show(endpoint.body.schema) } },
      }
    }
  }
  if (parameters.length > 0) operation['parameters'] = parameters
  operation['responses'] = responsesOf(endpoint, show)
  return operation
}

function permissionText({ permission, plan, applicationType }: Operation): string {
  const key =
    permission === 'public'
      ? 'Needs no key.'
      : permission === 'any-key'
        ? applicationType === undefined
          ? 'Any valid key.'
          : `Any valid key of a ${applicationType} application.`
        : `Needs \`${permission}\`.`
  return plan === 'enterprise' ? `${key} Needs the enterprise plan.` : key
}

function operationIdOf({ method, path }: Operation): string {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word !== '')
  return [method.toLowerCase(), ...words].join('_')
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/:([a-z_]+)/gi)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Endpoint, show: Show): JsonObject[] {
  if (query === undefined) return []
  const { properties } = show(query) as { properties?: Record<string, JsonObject> }
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))
}

function responsesOf({ answers }: Operation, show: Show): JsonObject {
  const responses: JsonObject = {}
  for (const [status, { description, schema }] of Object.entries(answers)) {
    responses[status] =
      schema === undefined
        ? { description }
        : { description, content: { 'application/json': { schema: show(schema) } } }
  }
  responses['default'] = {
    description: 'An error.',
    content: { 'application/json': { schema: show(problem) } },
  }
  return responses
}

/** Returns the JSON Schema of `schema`, moving named ones into `components`. */
function shown(schema: z.ZodType, components: JsonObject): JsonObject {
  // Inside a wrapper a named schema is always a reference, at the root it would stand in full.
  const wrapped = z.toJSONSchema(z.object({ it: schema }), { io: 'input', unrepresentable: 'any' })
  const { $defs = {}, properties } = JSON.parse(
    JSON.stringify(wrapped).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as { $defs?: JsonObject; properties: { it: JsonObject } }
  for (const [name, definition] of Object.entries($defs)) {
    delete (definition as JsonObject)['id']
    components[name] = definition
  }
  return properties.it
}

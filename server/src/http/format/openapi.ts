/**
 * The OpenAPI 3.1 document, generated from the endpoint records, so that it describes the operations served.
 *
 * Schemas with an id (`.meta({ id })`) become named components. Nothing is written twice: the records carry the same Zod schemas
 * that the use cases parse with.
 */
import { z } from 'zod'
import { INVOCATIONS } from '../../base/access.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { acceptsIdempotencyKeys, type Endpoint, type Operation } from '../endpoint.ts'
import { TimeSlice, type SliceClock } from '../../base/time-slice.ts'
import { ANSWER_HEADERS, responsesOf, sharedResponses, type Show } from './openapi-responses.ts'
import { isStreaming, type StreamingEndpoint } from '../streaming/streaming-endpoint.ts'

/** In time slices: generating all operations takes a tenth of a second. */
export async function openApiDocument(
  endpoints: readonly (Endpoint | StreamingEndpoint)[],
  version: string,
  clock: SliceClock,
): Promise<JsonObject> {
  const slice = new TimeSlice(clock)
  const schemas: JsonObject = {}
  const paths: Record<string, JsonObject> = {}
  const responses = sharedResponses((schema) => shown(schema, schemas))
  for (const endpoint of endpoints) {
    await slice.yieldIfDue()
    for (const path of pathsOf(endpoint)) {
      const item = (paths[path.replaceAll(/:([a-z_]+)/gi, '{$1}')] ??= {})
      const operation = operationOf({ ...endpoint, path }, (schema) => shown(schema, schemas))
      item[endpoint.method.toLowerCase()] = operation
    }
  }
  allowNulls(paths, schemas)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Symbolon',
      version,
      description: ABOUT,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths,
    components: {
      schemas,
      parameters: HEADERS,
      responses,
      headers: ANSWER_HEADERS,
      securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'BT-API-KEY' } },
    },
  }
}

/**
 * What holds for all operations. Schemas of answers list every member there is; they allow more because a later version may add
 * some, and a client must ignore those it does not know.
 */
const ABOUT = `A self-hosted tokenization vault.

Every response of this version is described here, with its members and headers; a later version may add members, so ignore
those that you do not know. \`x-codes\` lists the \`code\` values of an error.

HEAD works wherever GET does, except at /proxy: the headers are the same, and there is no body. OPTIONS works at every path
(\`Preflight\`). A path that does not exist gets \`Problem404\`, and a method that the path does not have gets
\`Problem405\` (\`ProxyProblem405\` below /proxy). Headers are checked first: unacceptable ones get \`Problem400\`, \`Problem417\`
or \`Problem431\`. Whether the response to a request with an \`Origin\` has \`Access-Control-Allow-Origin\`,
\`Access-Control-Expose-Headers\` and \`Vary\` depends on the origins that the operator allows.`

/** Returns the paths of an operation: streaming endpoints also serve everything below. */
export function pathsOf(endpoint: Endpoint | StreamingEndpoint): string[] {
  return isStreaming(endpoint) ? [endpoint.path, `${endpoint.path}/:below`] : [endpoint.path]
}

/** Headers that control the service, by their component names. */
const HEADERS = {
  traceId: header(
    'BT-TRACE-ID',
    'Your own label for the request, which the answer and the log repeat.',
  ),
  idempotencyKey: header(
    'BT-IDEMPOTENCY-KEY',
    'The same key again, within a day, is answered as before, and nothing is done twice.',
  ),
  transactionId: header('BT-TRANSACTION-ID', 'The transaction that this is to be part of.'),
  proxyUrl: header('BT-PROXY-URL', 'Where to; needed unless BT-PROXY-KEY is there.'),
  proxyKey: header('BT-PROXY-KEY', 'The key of a proxy, which says where to.'),
  proxyConnection: header('BT-PROXY-CONNECTION', 'The header Connection of the call.'),
  proxyKeepAlive: header('BT-PROXY-KEEP-ALIVE', 'The header Keep-Alive of the call.'),
  proxyDryRun: header(
    'BT-PROXY-DRY-RUN',
    '`true`: nothing is sent, and the answer says what would be.',
  ),
} as const satisfies Record<string, JsonObject>

function header(name: string, description: string): JsonObject {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } }
}

function headersOf(endpoint: Endpoint | StreamingEndpoint): JsonObject[] {
  const names: (keyof typeof HEADERS)[] = ['traceId']
  if (isStreaming(endpoint)) {
    names.push('proxyUrl', 'proxyKey', 'proxyConnection', 'proxyKeepAlive', 'proxyDryRun')
  } else {
    const { permission, transactional } = endpoint
    if (permission !== 'public' && acceptsIdempotencyKeys(endpoint)) names.push('idempotencyKey')
    if (transactional === true) names.push('transactionId')
  }
  return names.map((it) => ({ $ref: `#/components/parameters/${it}` }))
}

function operationOf(endpoint: Endpoint | StreamingEndpoint, show: Show): JsonObject {
  const operation: JsonObject = {
    operationId: operationIdOf(endpoint),
    summary: endpoint.summary,
    description: permissionText(endpoint),
  }
  if (endpoint.permission === 'public') operation['security'] = []
  const parameters = [...pathParameters(endpoint.path), ...headersOf(endpoint)]
  if (isStreaming(endpoint)) {
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
        : `Needs ${INVOCATIONS.has(permission) ? '`token:use` or ' : ''}\`${permission}\`.`
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

/**
 * In a body a null member is the same as an absent one, so its schema allows null where it allows absence. In a merge patch null
 * removes a member, so the schemas of patches say themselves where it may.
 */
function allowNulls(paths: Record<string, JsonObject>, schemas: JsonObject): void {
  const operations = Object.values(paths).flatMap((it) => Object.values(it)) as JsonObject[]
  const answered = new Set<string>()
  for (const { responses } of operations) addReferences(responses!, schemas, answered)
  const roots = new Set<JsonObject>()
  for (const operation of operations) {
    const { content = {} } = (operation['requestBody'] ?? {}) as {
      content?: Record<string, { schema?: JsonObject }>
    }
    for (const [contentType, { schema }] of Object.entries(content)) {
      if (schema === undefined || contentType === MERGE_PATCH) continue
      const [name] = namesIn({ $ref: schema['$ref'] ?? null })
      // A schema that is also used in a response has no nulls.
      if (name === undefined) roots.add(schema)
      else if (!answered.has(name)) roots.add(schemas[name] as JsonObject)
    }
  }
  for (const root of roots) {
    const { properties = {}, required = [] } = root as {
      properties?: JsonObject
      required?: string[]
    }
    for (const [name, schema] of Object.entries(properties)) {
      if (required.includes(name) || takesNull(schema as JsonObject)) continue
      properties[name] = { anyOf: [schema, { type: 'null' }] }
    }
  }
}

const MERGE_PATCH = 'application/merge-patch+json'

/** Whether null itself is valid, whatever members and items may be. */
function takesNull({ type, anyOf, enum: values, $ref }: JsonObject): boolean {
  if (Array.isArray(anyOf)) return (anyOf as JsonObject[]).some(takesNull)
  if (Array.isArray(type)) return type.includes('null')
  return type === 'null' || (type === undefined && values === undefined && $ref === undefined)
}

/** Adds the names of the components `value` refers to, directly or through other components. */
function addReferences(value: Json, schemas: JsonObject, names: Set<string>): void {
  for (const name of namesIn(value)) {
    if (names.has(name)) continue
    names.add(name)
    addReferences(schemas[name]!, schemas, names)
  }
}

function namesIn(value: Json): string[] {
  return [...JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map((it) => it[1]!)
}

/** Returns the JSON Schema of `schema`, moving named ones into `components`. */
function shown(schema: z.ZodType, components: JsonObject): JsonObject {
  // In a wrapper a named schema is always a reference; at the root it would be inlined.
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

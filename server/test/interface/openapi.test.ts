import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { JsonObject } from '../../src/base/json.ts'
import { isJsonObject, type Json } from '../../src/base/json.ts'
import type { Endpoint, EndpointRequest } from '../../src/http/endpoint.ts'
import { describedRefusals } from '../../src/http/format/described-refusals.ts'
import { pathsOf } from '../../src/http/format/openapi.ts'
import { isStreaming } from '../../src/http/streaming/streaming-endpoint.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import { stillWorld } from '../kit/still-world.ts'
import { tokenStage } from '../kit/token-stage.ts'

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Record<string, Record<string, DescribedOperation>>
  readonly components: {
    readonly schemas: Record<string, JsonObject>
    readonly responses: Record<string, DescribedResponse>
    readonly headers: Record<string, JsonObject>
    readonly parameters: Record<string, { readonly name: string }>
  }
}

interface DescribedOperation {
  readonly operationId: string
  readonly description: string
  readonly security?: readonly unknown[]
  readonly parameters?: readonly {
    readonly name?: string
    readonly in?: string
    readonly $ref?: string
  }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: JsonObject }> }
  readonly responses: Record<string, DescribedResponse>
}

interface DescribedResponse {
  readonly $ref?: string
  readonly content?: Record<string, { readonly schema: JsonObject }>
}

const ROUTES = stillRoutes()

async function openApi(): Promise<Document> {
  const { vault } = await tokenStage()
  const reply = await vault.call('GET', '/openapi.json')
  assert.equal(reply.status, 200)
  return JSON.parse(reply.text) as Document
}

describe('GET /openapi.json', () => {
  test('is encoded once, however many ask for it', async () => {
    const { handle } = ROUTES.find((it) => it.path === '/openapi.json') as Endpoint
    const asked = { world: stillWorld() } as unknown as EndpointRequest
    const [one, other] = await Promise.all([handle(asked), handle(asked)])
    assert.ok(Buffer.isBuffer(one.bytes))
    assert.equal(one.bytes, other.bytes)
  })

  test('is a valid OpenAPI 3.1 document', async () => {
    const document = await openApi()
    assert.equal(document.openapi, '3.1.0')
    const validator = new Validator()
    const { valid, errors } = await validator.validate({ ...document })
    assert.equal(valid, true, JSON.stringify(errors))
    assert.equal(validator.version, '3.1')
  })

  test('is found not to be valid when it is not', async () => {
    const document = await openApi()
    const { responses: _responses, ...silent } = operationOf(document, 'POST', '/tokenize')
    for (const paths of [{ '/tokenize': { post: silent, get: 1 } }, { tokenize: {} }]) {
      assert.equal((await new Validator().validate({ ...document, paths })).valid, false)
    }
  })

  test('describes the operations of the server and no other', async () => {
    const { paths } = await openApi()
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const served = ROUTES.flatMap((it) =>
      pathsOf(it).map((path) => `${it.method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
    )
    assert.ok(served.includes('POST /proxy/{below}'))
    assert.deepEqual(described.toSorted(), served.toSorted())
  })

  test('says the version of the server', async () => {
    assert.equal((await openApi()).info.version, STILL_SETTINGS.version)
  })

  test('gives every operation a name of its own', async () => {
    const names = operations(await openApi()).map((it) => it.operationId)
    assert.equal(new Set(names).size, names.length)
  })

  test('says of every operation what its errors look like, and whether it takes a key', async () => {
    const document = await openApi()
    for (const route of ROUTES) {
      const { method, path, permission } = route
      const { responses, security } = operationOf(document, method, path)
      const name = isStreaming(route) ? 'ProxyProblem' : 'Problem'
      const errors = Object.keys(responses).filter(
        (it) => Number(it) >= 400 && !(it in route.answers),
      )
      assert.ok(errors.includes('400') && errors.includes('500'))
      for (const status of errors) {
        const { $ref } = responses[status]!
        const { content } = $ref === undefined ? responses[status]! : sharedResponse(document, $ref)
        const error = content?.['application/json']?.schema
        assert.deepEqual(error, { $ref: `#/components/schemas/${name}` }, `${method} ${path}`)
      }
      assert.deepEqual(security, permission === 'public' ? [] : undefined)
    }
    const problem = document.components.schemas['Problem']!
    assert.deepEqual(problem['required'], ['title', 'status', 'detail'])
  })

  test('says of every operation which permission it asks for', async () => {
    const document = await openApi()
    for (const { method, path, permission } of ROUTES) {
      const { description } = operationOf(document, method, path)
      const words = { public: 'Needs no key', 'any-key': 'Any valid key' } as Record<string, string>
      assert.ok(description.includes(words[permission] ?? `\`${permission}\``), `${method} ${path}`)
    }
  })

  test('says that a caller that may use tokens anywhere may use them here', async () => {
    const document = await openApi()
    for (const path of ['/proxy', '/reactors/:id/react']) {
      assert.match(operationOf(document, 'POST', path).description, /`token:use` or `\w+:invoke`/)
    }
  })

  test('names the headers that mean something to an operation', async () => {
    const document = await openApi()
    const headers = (method: string, path: string): string[] =>
      (operationOf(document, method, path).parameters ?? []).flatMap(({ $ref }) => {
        const name = /^#\/components\/parameters\/(\w+)$/.exec($ref ?? '')?.[1]
        return name === undefined ? [] : [document.components.parameters[name]!.name]
      })
    const always = ['BT-TRACE-ID']
    assert.deepEqual(headers('GET', '/tokens'), always)
    assert.deepEqual(headers('DELETE', '/tokens/:id'), [...always, 'BT-TRANSACTION-ID'])
    const written = [...always, 'BT-IDEMPOTENCY-KEY']
    assert.deepEqual(headers('POST', '/tokenize'), [...written, 'BT-TRANSACTION-ID'])
    assert.deepEqual(headers('POST', '/applications'), written)
    assert.deepEqual(headers('POST', '/detokenize'), always)
    const steering = ['URL', 'KEY', 'CONNECTION', 'KEEP-ALIVE', 'DRY-RUN'].map(
      (it) => `BT-PROXY-${it}`,
    )
    assert.deepEqual(headers('PUT', '/proxy/:below'), [...always, ...steering])
  })

  test('lets members of a body be null that may be absent, and no others', async () => {
    const { components, paths } = await openApi()
    const request = components.schemas['TokenRequest']!['properties'] as Record<string, JsonObject>
    assert.ok(takesNull(request['metadata']!) && takesNull(request['containers']!))
    const token = components.schemas['Token']!['properties'] as Record<string, JsonObject>
    assert.ok(!takesNull(token['metadata']!))
    const patch = components.schemas['TokenPatch']!['properties'] as Record<string, JsonObject>
    assert.match(
      JSON.stringify(patch['metadata']),
      /"additionalProperties":\{"type":\["string","null"\]\}/,
    )
    const content = paths['/applications']!['post']!.requestBody!.content['application/json']!
    const { $ref } = content.schema
    const body =
      typeof $ref === 'string' ? components.schemas[$ref.split('/').at(-1)!]! : content.schema
    const members = body['properties'] as Record<string, JsonObject>
    assert.ok(!takesNull(members['name']!) && takesNull(members['permissions']!))
  })

  test('allows null in a patch exactly where the server takes it', async () => {
    const { vault, key: creating } = await tokenStage()
    const { managementKey: key } = vault
    const updating = await vault.keyFor({ permissions: ['token:update'] })
    const { components } = (await vault.call('GET', '/openapi.json')).json() as unknown as Document
    const cases = [
      ['TokenPatch', '/tokens', creating, updating, { data: 'a' }],
      ['ReactorPatch', '/reactors', key, key, { name: 'a', code: 'a', configuration: {} }],
      ['ProxyPatch', '/proxies', key, key, { name: 'a', destination_url: 'https://a.example' }],
    ] as const
    for (const [name, path, maker, patcher, body] of cases) {
      const made = await vault.call('POST', path, { key: maker, body })
      assert.equal(made.status, 201, made.text)
      const url = `${path}/${made.json()['id'] as string}`
      const members = components.schemas[name]!['properties'] as Record<string, JsonObject>
      for (const [member, schema] of Object.entries(members)) {
        const reply = await vault.call('PATCH', url, { key: patcher, body: { [member]: null } })
        assert.equal(reply.status < 300, takesNull(schema), `${name}.${member}: ${reply.text}`)
      }
    }
  })

  test('requires the configuration of a reactor where the server does', async () => {
    for (const configurationRequired of [true, false]) {
      const { vault } = await tokenStage({ configurationRequired })
      const document = (await vault.call('GET', '/openapi.json')).json() as unknown as Document
      const required = document.components.schemas['ReactorRequest']!['required'] as string[]
      assert.equal(required.includes('configuration'), configurationRequired)
    }
  })

  test('names the parameters of every path, and the body and answers of every operation', async () => {
    const document = await openApi()
    for (const route of ROUTES) {
      const { method, path, answers } = route
      const operation = operationOf(document, method, path)
      const inPath = (operation.parameters ?? []).filter((it) => it.in === 'path')
      const names = [...path.matchAll(/:(\w+)/g)].map((it) => it[1])
      assert.deepEqual(
        inPath.map((it) => it.name),
        names,
      )
      assert.deepEqual(
        Object.keys(operation.requestBody?.content ?? {}),
        isStreaming(route) ? ['*/*'] : route.body === undefined ? [] : [route.body.contentType],
      )
      const refusals = describedRefusals(route)
      for (const [status, { schema, contentType }] of Object.entries(answers)) {
        const types = Object.keys(operation.responses[status]?.content ?? {})
        const isJson = schema !== undefined || refusals.has(Number(status))
        assert.equal(types.includes('application/json'), isJson)
        for (const it of [contentType ?? []].flat()) assert.ok(types.includes(it), `${path} ${it}`)
      }
    }
  })

  test('writes the errors that most operations share once, and refers to them', async () => {
    const { paths, components } = await openApi()
    const text = JSON.stringify(paths)
    const unused = Object.keys(components.responses).filter(
      (it) => !text.includes(`"#/components/responses/${it}"`),
    )
    // Where nothing is served there is no operation, only these errors.
    const ofNoOperation = ['Problem400', 'Problem404', 'Problem405']
    assert.deepEqual(
      unused.filter((it) => it.startsWith('Problem')),
      ofNoOperation,
    )
  })

  test('refers to nothing that is not there', async () => {
    const document = await openApi()
    const references = referencesIn(document as unknown as Json)
    assert.ok(references.length > 0)
    for (const reference of references) {
      const [, kind, name] = /^#\/components\/(\w+)\/(\w+)$/.exec(reference) ?? []
      assert.ok(kind !== undefined, reference)
      const named = document.components[kind as keyof Document['components']]
      assert.ok(Object.hasOwn(named, name!), reference)
    }
  })
})

/** Whether a schema allows null itself, and not only in members and items. */
function takesNull({ type, anyOf, enum: values }: JsonObject): boolean {
  if (Array.isArray(anyOf)) return (anyOf as JsonObject[]).some(takesNull)
  if (type === undefined) return values === undefined
  return Array.isArray(type) ? type.includes('null') : type === 'null'
}

function operations({ paths }: Document): DescribedOperation[] {
  return Object.values(paths).flatMap((item) => Object.values(item))
}

function operationOf({ paths }: Document, method: string, path: string): DescribedOperation {
  return paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
}

function sharedResponse({ components }: Document, reference: string): DescribedResponse {
  return components.responses[reference.split('/').at(-1)!]!
}

function referencesIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (!isJsonObject(value)) return []
  const { $ref } = value
  return [
    ...(typeof $ref === 'string' ? [$ref] : []),
    ...Object.values(value).flatMap(referencesIn),
  ]
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { LentKeys } from '../../src/access/lent-keys.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { isJsonObject, type Json } from '../../src/base/json.ts'
import { isPassage } from '../../src/http/passage.ts'
import { routes } from '../../src/routes.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import { tokenStage } from '../kit/token-stage.ts'

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, JsonObject> }
}

interface Operation {
  readonly operationId: string
  readonly description: string
  readonly security?: readonly unknown[]
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: JsonObject }> }
  readonly responses: Record<
    string,
    { readonly content?: Record<string, { readonly schema: JsonObject }> }
  >
}

const ROUTES = routes(STILL_SETTINGS, new LentKeys())

async function openApi(): Promise<Document> {
  const { vault } = await tokenStage()
  const reply = await vault.call('GET', '/openapi.json')
  assert.equal(reply.status, 200)
  return JSON.parse(reply.text) as Document
}

describe('GET /openapi.json', () => {
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
    const served = ROUTES.map((it) => `${it.method} ${it.path.replaceAll(/:(\w+)/g, '{$1}')}`)
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
    for (const { method, path, permission } of ROUTES) {
      const { responses, security } = operationOf(document, method, path)
      const error = responses['default']?.content?.['application/json']?.schema
      assert.deepEqual(error, { $ref: '#/components/schemas/Problem' }, `${method} ${path}`)
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
        isPassage(route) ? ['*/*'] : route.body === undefined ? [] : [route.body.contentType],
      )
      for (const [status, { schema }] of Object.entries(answers)) {
        const content = operation.responses[status]?.content
        assert.equal(content?.['application/json'] !== undefined, schema !== undefined)
      }
    }
  })

  test('refers to nothing that is not there', async () => {
    const document = await openApi()
    const references = referencesIn(document as unknown as Json)
    assert.ok(references.length > 0)
    for (const reference of references) {
      const name = /^#\/components\/schemas\/(\w+)$/.exec(reference)?.[1]
      assert.ok(name !== undefined && name in document.components.schemas, reference)
    }
  })
})

function operations({ paths }: Document): Operation[] {
  return Object.values(paths).flatMap((item) => Object.values(item))
}

function operationOf({ paths }: Document, method: string, path: string): Operation {
  return paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
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

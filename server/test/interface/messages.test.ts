/** Messages about wrong members: all in the words of this service, whatever is sent to whichever operation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { permissionsOf } from '../../src/access/permissions.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { ServiceError, type MemberErrors } from '../../src/base/service-error.ts'
import { parseBy } from '../../src/request/parse.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'
import { assertNone, findings, isTest, sourceFiles } from '../tidy/source.ts'

const ROUTES = stillRoutes().filter((it) => 'handle' in it)

/** Words of the library in its own messages. */
const LIBRARY_TEXT =
  /\bInvalid\b|: expected |\breceived\b|Too (small|big)|Unrecognized|undefined|NaN|[<>]=|"\|"|pattern/

const SENT = 'secret-4242'

/** Values of every JSON kind, among them those at the edges of what schemas allow. */
const WRONG: readonly Json[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  '',
  SENT,
  `${SENT}\u0000`,
  'x'.repeat(20_000),
  [],
  [SENT],
  [7],
  Array<Json>(1_001).fill(SENT),
  {},
  { [SENT]: SENT },
  { [SENT]: 7 },
]

const BASES: Readonly<Record<string, JsonObject>> = {
  'POST /tokens': { data: 'x' },
  'POST /applications': { name: 'x', type: 'private', permissions: ['token:read'] },
  'PUT /applications/:id': { name: 'x', permissions: ['token:read'] },
  'POST /sessions/authorize': { nonce: 'x', permissions: ['token:read'] },
  'POST /proxies': { name: 'x', destination_url: 'https://x.example' },
  'PUT /proxies/:id': { name: 'x', destination_url: 'https://x.example' },
  'POST /reactors': { name: 'x', code: 'x', configuration: {} },
  'PUT /reactors/:id': { name: 'x', code: 'x', configuration: {} },
  'PUT /tenants/self': { name: 'x' },
}

test('no schema of an operation has a message in the words of the library', () => {
  let count = 0
  for (const { method, path, body, query } of ROUTES) {
    for (const schema of [body?.schema, query]) {
      if (schema === undefined) continue
      for (const value of wrongValues(schema, {})) {
        const errors = errorsOf(schema, value)
        for (const message of Object.values(errors).flat()) {
          assertOurs(message, `${method} ${path}`)
          count++
        }
      }
    }
  }
  assert.ok(count > 1_000, `${count} messages`)
})

test('no operation answers a wrong body in the words of the library', async () => {
  const vault = await stillVault()
  const keys = [
    vault.managementKey,
    await vault.keyFor({ type: 'private', permissions: permissionsOf('private') }),
  ]
  const ids = await furnish(vault, keys[1]!)
  const asked = new Set<string>()
  for (const { method, path, body } of ROUTES) {
    if (body === undefined) continue
    const name = `${method} ${path}`
    const url = path.replace(/^(\/\w+)\/:\w+/, (_, of: string) => `${of}/${ids[of]}`)
    for (const value of wrongValues(body.schema, BASES[name] ?? {})) {
      for (const key of keys) {
        const headers = { 'content-type': body.contentType }
        const reply = await vault.call(method, url, { key, body: value, headers })
        assert.ok(reply.status < 500, `${name} ${reply.text}`)
        if (reply.status !== 400) continue
        for (const message of Object.values(reply.json()['errors'] as object).flat()) {
          assertOurs(message as string, name)
          asked.add(name)
        }
      }
    }
  }
  for (const name of Object.keys(BASES)) assert.ok(asked.has(name), name)
  await vault.close()
})

test('only parse.ts runs a schema', () => {
  assertNone(
    sourceFiles()
      .filter((it) => !isTest(it.path) && it.path !== 'src/request/parse.ts')
      .flatMap((it) =>
        findings(it, 'code', /\.safeParse\(/g, 'parse by parseBy(), which has our messages'),
      ),
  )
})

function assertOurs(message: string, where: string): void {
  assert.doesNotMatch(message, LIBRARY_TEXT, where)
  assert.doesNotMatch(message, /of the required type/, `${where}: no name for the type`)
  assert.ok(!message.includes(SENT), `${where}: ${message}`)
}

function errorsOf(schema: z.ZodType, value: Json): MemberErrors {
  let found: MemberErrors = {}
  const refuse = (errors: MemberErrors): ServiceError => {
    found = errors
    return new ServiceError('body_invalid', errors)
  }
  try {
    parseBy(schema, value, refuse)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
  }
  return found
}

/** Wrong values in place of the whole, and of each member of `base` at any depth, one at a time. */
function* wrongValues(schema: z.ZodType, base: JsonObject): Iterable<Json> {
  yield* WRONG
  const inner = unwrapped(schema)
  if (inner instanceof z.ZodArray) {
    for (const it of wrongValues(inner.element as z.ZodType, {})) yield [it]
  }
  if (!(inner instanceof z.ZodObject)) return
  for (const [name, member] of Object.entries(inner.shape)) {
    for (const it of wrongValues(member as z.ZodType, {})) yield { ...base, [name]: it }
    const { [name]: _left, ...rest } = base
    yield rest
  }
}

function unwrapped(schema: z.ZodType): z.ZodType {
  const { def } = schema as unknown as { def: { innerType?: z.ZodType } }
  return def.innerType === undefined ? schema : unwrapped(def.innerType)
}

/** Creates one of each resource; returns their ids by path. */
async function furnish(vault: StillVault, key: string): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const name of ['POST /tokens', 'POST /applications', 'POST /proxies', 'POST /reactors']) {
    const [, path] = name.split(' ')
    const own = path === '/tokens' ? key : vault.managementKey
    const reply = await vault.call('POST', path!, { key: own, body: BASES[name]! })
    assert.equal(reply.status, 201, reply.text)
    ids[path!] = reply.json()['id'] as string
  }
  return ids
}

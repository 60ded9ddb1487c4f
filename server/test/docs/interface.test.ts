import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as limits from '../../src/base/limits.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { PERMISSIONS } from '../../src/base/permission-table.ts'
import { TOKEN_TYPES } from '../../src/tokens/types/registry.ts'
import { runPlainly } from '../kit/plain-runner.ts'
import { STILL_BUILDS } from '../kit/still-builds.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { stillVault } from '../kit/still-vault.ts'
import { headingsOf, readDocument } from '../tidy/docs.ts'
import { assertNone, sourceFiles } from '../tidy/source.ts'
import { Bindings, examplesOf } from './examples.ts'

const DOCUMENT = readDocument('docs/interface.md', 'every operation, with examples')

test('every example of the interface answers what the page says, in order, in one vault', async () => {
  const vault = await stillVault({
    tokensMax: limits.TOKENIZE_TOKENS_MAX,
    fieldBuilds: STILL_BUILDS,
  })
  const { egress, runner } = vault.world
  const bindings = new Bindings()
  egress.reply = ({ method, url, body }) => {
    const received = { request: `${method} ${url}`, ...(body.length > 0 && { body: parsed(body) }) }
    const status = url.startsWith('https://gone.example/') ? 410 : 200
    return { status, reason: 'OK', chunks: [JSON.stringify(received)] }
  }
  runner.behave = runPlainly
  bindings.bind('$MANAGEMENT_KEY', vault.managementKey)
  const rule = { priority: 1, container: '/', transform: 'reveal', permissions: ['token:read'] }
  const applications: [name: string, application: JsonObject][] = [
    ['$KEY', { type: 'private', permissions: ['token:create', 'token:read'] }],
    ['$REVEAL_KEY', { type: 'private', rules: [rule] }],
    [
      '$CHANGE_KEY',
      {
        type: 'private',
        permissions: ['token:create', 'token:read', 'token:update', 'token:delete'],
      },
    ],
    ['$USE_KEY', { type: 'private', permissions: ['token:use'] }],
    ['$SEARCH_KEY', { type: 'private', permissions: ['token:search'] }],
    ['$PUBLIC_KEY', { type: 'public', permissions: ['token:create'] }],
  ]
  for (const [name, application] of applications) {
    bindings.bind(name, await vault.keyFor({ name: name.slice(1), ...application }))
  }

  for (const { line, request, answer } of examplesOf(DOCUMENT)) {
    const [method, path] = bindings.translate(request.first).split(' ')
    const headers = Object.entries(request.headers).map(([name, it]) => [
      name,
      bindings.translate(it),
    ])
    const reply = await vault.servers.next().inject({
      method: method as 'GET',
      url: path!,
      headers: { host: 'localhost:4400', ...Object.fromEntries(headers) },
      ...(request.body === '' ? {} : { payload: bindings.translate(request.body) }),
    })
    const status = `${reply.statusCode} ${reply.statusMessage}`
    try {
      assert.equal(status, answer.first)
      if (answer.body === '') assert.ok(reply.payload === '' || isFile(answer.headers))
      else bindings.match(JSON.parse(answer.body) as Json, reply.json<Json>())
      for (const [name, it] of Object.entries(answer.headers)) {
        assert.equal(String(reply.headers[name]), bindings.translate(it), name)
      }
    } catch (error) {
      const place = `docs/interface.md:${line}: ${request.first}`
      throw new Error(`${place}\n${String(error)}\n${status}\n${reply.payload}`, { cause: error })
    }
    // Finish background work before the next example.
    for (let stages = 0; stages < 2; stages++) {
      const { jobs } = vault.servers.next()
      await jobs.poll()
      await jobs.settled()
    }
  }
  await vault.close()
})

/** Whether an answer is described by its headers: a script, a style sheet or a document. */
function isFile(headers: Readonly<Record<string, string>>): boolean {
  return /^text\/(?:css|html|javascript)/.test(headers['content-type'] ?? '')
}

function parsed(body: Buffer): Json {
  return JSON.parse(body.toString()) as Json
}

test('every operation has an example, but for the one that would show this page again', () => {
  const shown = examplesOf(DOCUMENT).map((it) => it.request.first.split('?')[0]!)
  const missing = stillRoutes()
    .filter(({ path }) => path !== '/openapi.json' && path !== '/')
    .filter(({ method, path }) => {
      const form = new RegExp(`^${method} ${path.replaceAll(/:\w+/g, '[^/]+')}$`)
      return !shown.some((it) => form.test(it))
    })
    .map(({ method, path }) => `docs/interface.md: show ${method} ${path} in an example`)
  assertNone(missing)
})

test('operations stand on the page in the order of routes.ts', () => {
  const operations = stillRoutes().map(({ method, path }) => {
    return `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
  })
  const headings = headingsOf(DOCUMENT).filter((it) => operations.includes(it))
  assert.deepEqual(headings, operations)
})

test('every section of the page that a comment leans on is there', () => {
  const headings = headingsOf(DOCUMENT)
  const missing = sourceFiles().flatMap((file) =>
    [...file.comments.matchAll(/\binterface\.md, ([A-Z][a-z]+(?: [a-z]+)*)/g)]
      .map(([, section]) => section!)
      .filter((section) => !headings.some((it) => section === it || section.startsWith(`${it} `)))
      .map((section) => `server/${file.path}: docs/interface.md has no section ${section}`),
  )
  assertNone(missing)
})

test('every permission and every token type stands in its table', () => {
  const rows = DOCUMENT.split('\n').filter((it) => it.startsWith('|'))
  const names = [...PERMISSIONS.map((it) => it.type), ...TOKEN_TYPES.map((it) => it.name)]
  const missing = names.filter(
    (name) => !rows.some((it) => it.split(' | ')[0]!.includes(`\`${name}\``)),
  )
  assert.deepEqual(missing, [])
})

describe('limits', () => {
  for (const [name, value] of Object.entries(limits)) {
    if (name === 'KiB' || name === 'MiB') continue
    test(`${name} stands on the page as it is`, () => {
      assert.ok(
        DOCUMENT.includes(`| ${shownLimit(name, value)} | \`${name}\` |`),
        `docs/interface.md, Limits: a row needs to end with | ${shownLimit(name, value)} | \`${name}\` |`,
      )
    })
  }
})

/** Renders a limit by the unit in its name. */
function shownLimit(name: string, value: number): string {
  if (/_MS(?:_|$)/.test(name)) {
    for (const [unit, ms] of [
      ['h', 3_600_000],
      ['s', 1_000],
    ] as const) {
      if (value >= ms && value % ms === 0 && (unit === 's' || value >= 3_600_000))
        return `${value / ms} ${unit}`
    }
    return `${value} ms`
  }
  if (/_(?:BYTES|CHARS)_/.test(name)) {
    if (value % limits.MiB === 0) return `${value / limits.MiB} Mi`
    if (value % limits.KiB === 0) return `${value / limits.KiB} Ki`
  }
  return value.toLocaleString('en-US')
}

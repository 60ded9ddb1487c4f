import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pathHider } from './guest/hidden-paths.ts'
import { installationPaths } from './installation-paths.ts'
import { parseThrown } from './parse-thrown.ts'

const PATHS = [
  { real: '/srv/vault', shown: '/vault' },
  { real: '/srv/vault/node_modules', shown: '/reactor/node_modules' },
  { real: '/srv/a b (c)+', shown: '/odd' },
]

test('pathHider() replaces paths as such and in file URLs, the longest first, and nothing that only looks alike', () => {
  const hide = pathHider(PATHS)
  const cases: [text: string, shown: string][] = [
    ['/srv/vault', '/vault'],
    ["in '/srv/vault/node_modules/uuid'", "in '/reactor/node_modules/uuid'"],
    ['(/srv/vault/a.js:1:2) (/srv/vault.)', '(/vault/a.js:1:2) (/vault.)'],
    ['file:///srv/vault/node_modules/a', 'file:///reactor/node_modules/a'],
    ['/srv/a b (c)+/d file:///srv/a%20b%20(c)+/d', '/odd/d file:///odd/d'],
    ['//srv/vault, a:/srv/vault', '//vault, a:/vault'],
    ['/srv/vaults /srv/vault-2', '/srv/vaults /srv/vault-2'],
    ['https://example.com/srv/vault ./srv/vault', 'https://example.com/srv/vault ./srv/vault'],
    ['', ''],
  ]
  for (const [text, shown] of cases) assert.equal(hide(text), shown)
  assert.equal(pathHider([])('/srv/vault'), '/srv/vault')
})

test('parseThrown() hides paths in every text of an error, and leaves a response as it is', () => {
  const at = '/srv/vault/x'
  const thrown = { name: at, message: at, errors: { [at]: [at, { [at]: at }] }, body: at }
  const { error } = parseThrown(Buffer.from(JSON.stringify(thrown)), '', pathHider(PATHS))
  const { body, ...texts } = error
  assert.ok(!JSON.stringify(texts).includes('/srv'), JSON.stringify(texts))
  assert.equal(body, at)
})

test('installationPaths() has the packages, wherever they lie, the service and Node, and no folder at the top', () => {
  const store = '/srv/store/uuid'
  const homes = { lodash: '/app/node_modules', axios: '/srv/vault/node_modules' }
  const installed = { homes, folders: ['/app/node_modules/lodash', store], aliases: [], links: [] }
  const real = installationPaths(installed, '/tmp/guest-1', {
    launcher: '/srv/vault/launch/launch.ts',
    node: process.execPath,
  }).map((it) => it.real)
  for (const it of [
    '/app/node_modules',
    '/srv/vault/node_modules',
    '/srv/vault',
    store,
    '/tmp/guest-1',
    process.execPath,
    fileURLToPath(new URL('../../..', import.meta.url)).slice(0, -1),
  ]) {
    assert.ok(real.includes(it), it)
  }
  assert.deepEqual(
    real.filter((it) => path.dirname(it) === '/'),
    [],
  )
})

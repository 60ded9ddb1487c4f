/** `symbolon configuration protect` as an operator runs it, with the service running and stopped. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { SECRET_PLACEHOLDER } from '../../src/base/secret-value.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

const SECRET = 'c4nary-of-the-secret'
const CONFIGURATION = { KEY: SECRET, REGION: 'eu' }
const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

for (const store of ['SQLite', 'PostgreSQL'] as const) {
  describe(`a string stored on ${store}`, () => {
    test('is marked as secret while the service runs, and while it is stopped', async (t) => {
      const { where, key, tenantId } = await stage(t, store)
      const vault = await startHostedVault(where.SYMBOLON_DATA_DIR, where)
      t.after(() => vault.stop())
      const ask = caller(vault.url, key)
      const [reactor, proxy] = [await makeReactor(ask), await makeProxy(ask)]
      const first = await protect(where, '--reactor', reactor, '--key', 'KEY')
      assert.deepEqual(first, said(`reactor ${reactor}: "KEY" is a secret now\n`))
      await vault.stop()

      const second = await protect(where, '--proxy', proxy, '--key', 'KEY')
      assert.deepEqual(second, said(`proxy ${proxy}: "KEY" is a secret now\n`))
      const again = await protect(where, '--reactor', reactor, '--key', 'KEY')
      assert.deepEqual(again, said(`reactor ${reactor}: "KEY" was a secret already\n`))

      const restarted = await startHostedVault(where.SYMBOLON_DATA_DIR, where)
      t.after(() => restarted.stop())
      const askAgain = caller(restarted.url, key)
      for (const [at, entity, id] of [
        [`/reactors/${reactor}`, 'reactor', reactor],
        [`/proxies/${proxy}`, 'proxy', proxy],
      ] as const) {
        const shown = await askAgain('GET', at)
        assert.deepEqual(shown['configuration'], { REGION: 'eu', KEY: SECRET_PLACEHOLDER })
        assert.equal('modified_at' in shown, false)
        const { data } = (await askAgain('GET', `/logs?entity_type=${entity}`)) as {
          data: JsonObject[]
        }
        const updated = data.filter((it) => it['operation'] === 'update')
        assert.deepEqual(
          updated.map((it) => [it['entity_id'], it['actor_id'], it['trace_id']]),
          [[id, tenantId, 'configuration-protect']],
        )
      }
      const verified = await runSymbolon(['audit', 'verify'], where)
      assert.equal(verified.status, 0, verified.out)
    })
  })
}

test('what cannot be marked is refused in one sentence, with a service and without', async (t) => {
  const { where, key } = await stage(t, 'SQLite')
  const vault = await startHostedVault(where.SYMBOLON_DATA_DIR, where)
  t.after(() => vault.stop())
  const ask = caller(vault.url, key)
  const id = await makeReactor(ask, { ...CONFIGURATION, LIST: [SECRET] })
  const cases: [args: string[], said: string][] = [
    [['--key', 'KEY'], 'Pass --reactor ID or --proxy ID.'],
    [['--reactor', id, '--proxy', id, '--key', 'KEY'], 'Pass --reactor ID or --proxy ID.'],
    [['--reactor', 'x', '--key', 'KEY'], "--reactor is 'x', but must be the id of a reactor."],
    [['--reactor', id], '--key is missing: the name of a value in the configuration.'],
    [
      ['--reactor', NOBODYS_ID, '--key', 'KEY'],
      `There is no reactor ${NOBODYS_ID} in tenant "default".`,
    ],
    [['--proxy', id, '--key', 'KEY'], `There is no proxy ${id} in tenant "default".`],
    [
      ['--reactor', id, '--key', 'key'],
      `The configuration of reactor ${id} has no "key": names are case-sensitive.`,
    ],
    [
      ['--reactor', id, '--key', 'LIST'],
      `"LIST" in the configuration of reactor ${id} is not a string, and only a string can be a secret: its code would receive another value.`,
    ],
  ]
  const check = async (): Promise<void> => {
    for (const [args, reason] of cases) {
      const { status, out, err } = await protect(where, ...args)
      assert.deepEqual([status, out, err], [1, '', `symbolon configuration protect: ${reason}\n`])
    }
    const { err } = await run(where, '--reactor', id, '--key', 'KEY')
    assert.match(err, /^symbolon configuration protect: --tenant is missing: pass the id or/)
  }
  await check()
  const shown = await ask('GET', `/reactors/${id}`)
  assert.deepEqual(shown['configuration'], { ...CONFIGURATION, LIST: [SECRET] })
  await vault.stop()
  await check()
})

test('no vault is created where there is none', async (t) => {
  const folder = join(temporaryFolder(t), 'typo')
  const where = { SYMBOLON_DATA_DIR: folder }
  const { status, err } = await protect(where, '--reactor', NOBODYS_ID, '--key', 'KEY')
  const reason = `Cannot open ${folder}: there is no symbolon.db in it`
  assert.deepEqual([status, err], [1, `symbolon configuration protect: ${reason}\n`])
})

type Ask = (method: string, path: string, body?: JsonObject) => Promise<JsonObject>

async function stage(t: TestContext, store: 'SQLite' | 'PostgreSQL') {
  const where = {
    SYMBOLON_DATA_DIR: temporaryFolder(t),
    ...(store === 'SQLite' ? {} : { SYMBOLON_DATABASE_URL: await freshDatabase() }),
  }
  const { out, err } = await runSymbolon(['init', '--json'], where)
  assert.equal(err, '')
  const made = JSON.parse(out) as Record<string, string>
  return { where, key: made['api_key']!, tenantId: made['tenant_id']! }
}

function caller(url: string, key: string): Ask {
  return async (method, path, body) => {
    const headers = { 'bt-api-key': key, 'content-type': 'application/json' }
    const reply = await fetch(url + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    assert.ok(reply.ok, text)
    return JSON.parse(text) as JsonObject
  }
}

async function makeReactor(ask: Ask, configuration: JsonObject = CONFIGURATION): Promise<string> {
  const code = 'module.exports = () => ({})'
  return (await ask('POST', '/reactors', { name: 'x', code, configuration }))['id'] as string
}

async function makeProxy(ask: Ask): Promise<string> {
  const body = { name: 'x', destination_url: 'https://a.example', configuration: CONFIGURATION }
  return (await ask('POST', '/proxies', body))['id'] as string
}

function said(out: string): Awaited<ReturnType<typeof protect>> {
  return { status: 0, out, err: '' }
}

async function protect(where: Record<string, string>, ...args: string[]) {
  return await run(where, '--tenant', 'default', ...args)
}

async function run(where: Record<string, string>, ...args: string[]) {
  const { status, out, err } = await runSymbolon(['configuration', 'protect', ...args], where)
  return { status, out, err }
}

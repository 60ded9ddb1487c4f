/**
 * An attacker who can write to the database file, but has neither key, looks for a row that reveals the data
 * sealed in another. docs/threat-model.md lists what such a writer can do; these tests cover what it cannot.
 */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, after, describe, test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { setUp } from '../../src/access/applications/set-up.ts'
import { createApp } from '../../src/app.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { stillWorld } from '../kit/still-world.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'

const NUMBER = '4242424242424242'
const CODE = '7391'
const SECRET = 'the secret of another tenant'

/** `card` and `mine` belong to the first tenant, `theirs` to the second. */
type Ids = Readonly<Record<'card' | 'mine' | 'theirs', string>>

interface RawReply {
  readonly status: number
  readonly text: string
}

interface OpenVault {
  readonly addTenant: (name: string) => Promise<string>
  readonly call: (key: string, path: string, body?: JsonObject) => Promise<RawReply>
  readonly logged: () => string
  readonly close: () => Promise<void>
}

/** The vault that keeps its data in `folder`, as `symbolon serve` opens it, but without a socket. */
async function open(folder: string): Promise<OpenVault> {
  const config = readConfig({ 'data-dir': folder, 'log-level': 'silent' }, {})
  const { world, keyProvider, close } = await openWorld(config, { onFault: () => {} })
  const { log, logged } = stillWorld()
  const app = createApp(
    { ...world, log },
    { ...STILL_SETTINGS, tokens: { tokensMax: 10, privacyShown: false } },
  )
  return {
    addTenant: async (name) =>
      (await setUp(world, keyProvider, { name, plan: 'enterprise' })).apiKey,
    call: async (key, url, payload) => {
      const headers = { 'bt-api-key': key }
      const reply = await app.inject(
        payload === undefined ? { url, headers } : { method: 'POST', url, headers, payload },
      )
      return { status: reply.statusCode, text: reply.payload }
    },
    logged: () => inspect(logged, { depth: 20, showHidden: true }),
    close: async () => {
      await app.close()
      await close()
    },
  }
}

async function make(vault: OpenVault, key: string, path: string, body: JsonObject) {
  const reply = await vault.call(key, path, body)
  assert.equal(reply.status, 201, reply.text)
  return JSON.parse(reply.text) as { readonly id: string; readonly key: string }
}

async function keyFrom(vault: OpenVault, managementKey: string): Promise<string> {
  const permissions = ['token:create', 'token:read']
  const rules = [{ priority: 1, container: '/', transform: 'reveal', permissions }]
  const application = { name: 'test', type: 'private', rules }
  return (await make(vault, managementKey, '/applications', application)).key
}

let folder = ''
let key = ''
let ids: Ids = { card: '', mine: '', theirs: '' }
const cleanUps: (() => void)[] = []

before(async () => {
  folder = temporaryFolder({ after: (fn) => cleanUps.push(fn) })
  const vault = await open(folder)
  key = await keyFrom(vault, await vault.addTenant('ours'))
  const theirKey = await keyFrom(vault, await vault.addTenant('theirs'))
  const token = async (by: string, body: JsonObject) => (await make(vault, by, '/tokens', body)).id
  ids = {
    card: await token(key, { type: 'card', data: { number: NUMBER, cvc: CODE } }),
    mine: await token(key, { data: 'mine' }),
    theirs: await token(theirKey, { data: SECRET }),
  }
  await vault.close()
})

after(() => {
  for (const cleanUp of cleanUps) cleanUp()
})

/** Changes a copy of the file, as an attacker who found it could, then reads a token. */
async function readAfter(t: TestContext, sql: string, read: keyof Ids): Promise<RawReply> {
  const copy = temporaryFolder(t)
  cpSync(folder, copy, { recursive: true })
  write(copy, sql)
  const vault = await open(copy)
  const reply = await vault.call(key, `/tokens/${ids[read]}`)
  await vault.close()
  for (const text of [reply.text, vault.logged()]) {
    const said = withoutChance(text)
    for (const secret of [NUMBER, CODE, SECRET]) assert.ok(!said.includes(secret), text)
  }
  return reply
}

/** Without ids, durations and the path of this checkout, each of which may contain the four digits of CODE. */
function withoutChance(text: string): string {
  return text.replaceAll(ID, '').replaceAll(DURATION, '').replaceAll(PROJECT, '')
}

const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g
const DURATION = /\bms: [\d.]+/g
const PROJECT = new URL('../../..', import.meta.url).href

function write(copy: string, sql: string): void {
  const db = new DatabaseSync(join(copy, 'symbolon.db'))
  try {
    for (const statement of sql.split(';')) {
      const named = statement.match(/:(?:card|mine|theirs)/g) ?? []
      const bytesOf = (name: string) =>
        Buffer.from(ids[name.slice(1) as keyof Ids].replaceAll('-', ''), 'hex')
      const values = Object.fromEntries(named.map((it) => [it, bytesOf(it)]))
      const { changes } = db.prepare(statement).run(values)
      assert.ok(Number(changes) > 0, statement)
    }
  } finally {
    db.close()
  }
}

const THEIRS_AS_MINE = `DELETE FROM tokens WHERE serial = :mine;
  UPDATE tokens SET serial = :mine, tenant = (SELECT tenant FROM tokens WHERE serial = :card)
  WHERE serial = :theirs`

/** The writer's changes; `:card`, `:mine` and `:theirs` are the internal ids of the tokens. */
const TRICKS: readonly (readonly [name: string, reads: 'card' | 'mine', sql: string])[] = [
  [
    "another tenant's data in a row of its own",
    'mine',
    'UPDATE tokens SET data = (SELECT data FROM tokens WHERE serial = :theirs) WHERE serial = :mine',
  ],
  ["another tenant's token by making it its own", 'mine', THEIRS_AS_MINE],
  [
    'another token’s data in a row of its own',
    'mine',
    'UPDATE tokens SET data = (SELECT data FROM tokens WHERE serial = :card) WHERE serial = :mine',
  ],
  [
    'a security code in the place of the data',
    'card',
    'UPDATE tokens SET data = cvc WHERE serial = :card',
  ],
  [
    'a card out of its container',
    'card',
    "UPDATE tokens SET containers = '/general/low/' WHERE serial = :card",
  ],
  ['a card as a generic token', 'card', "UPDATE tokens SET type = 'token' WHERE serial = :card"],
  [
    'anything of a row with one bit changed',
    'card',
    "UPDATE tokens SET data = CAST(substr(data, 1, 30) || x'00' || substr(data, 32) AS BLOB) WHERE serial = :card",
  ],
]

describe('a writer to the database cannot read', () => {
  for (const [name, read, sql] of TRICKS) {
    test(name, async (t) => assert.equal((await readAfter(t, sql, read)).status, 500))
  }

  test("another tenant's data with that tenant's keys in the place of its own", async (t) => {
    const keys = `UPDATE tenant_keys SET wrapped = (
        SELECT wrapped FROM tenant_keys AS theirs WHERE theirs.purpose = tenant_keys.purpose
        AND theirs.tenant = (SELECT tenant FROM tokens WHERE serial = :theirs))
      WHERE tenant = (SELECT tenant FROM tokens WHERE serial = :mine)`
    assert.equal((await readAfter(t, `${keys};${THEIRS_AS_MINE}`, 'mine')).status, 500)
  })

  test('anything with a permission that its kind of application may not hold', async (t) => {
    const sql = "UPDATE applications SET type = 'public' WHERE name = 'test'"
    assert.equal((await readAfter(t, sql, 'mine')).status, 403)
  })
})

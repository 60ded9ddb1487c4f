/** Requests that are forwarded by a proxy that was configured beforehand. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { InProcessCaller } from '../../src/base/access.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../kit/still-vault.ts'

const BASE = 'https://hidden.example/secret-path?token=hidden'

let vault: StillVault
let key: string
let asking: string
let open: string
beforeEach(async () => {
  vault = await stillVault()
  key = await vault.keyFor({ permissions: ['token:create', 'token:use'] })
  asking = await configure({})
  open = await configure({ require_auth: false })
})
afterEach(() => vault.close())

async function configure(more: JsonObject, management = vault.managementKey): Promise<string> {
  const body = { name: 'configured', destination_url: BASE, ...more }
  const reply = await vault.call('POST', '/proxies', { key: management, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['key'] as string
}

function ask(path: string, headers: Record<string, string>, body?: string): Promise<Reply> {
  const options = body === undefined ? {} : { rawBody: body }
  return vault.call('POST', path, { headers, ...options })
}

function sentUrls(): string[] {
  return vault.world.egress.sent.map((it) => it.url)
}

function codeOf(reply: Reply): unknown {
  assert.equal(reply.headers['bt-proxy-destination-status'], undefined)
  assert.deepEqual(vault.world.egress.sent, [])
  return (reply.json()['proxy_error'] as JsonObject)['code']
}

describe('a request that names a proxy by its key', () => {
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] satisfies Method[]) {
    test(`goes where the proxy leads: ${method}`, async () => {
      const headers = { 'bt-api-key': key, 'BT-PROXY-KEY': asking }
      const reply = await vault.call(method, '/proxy/a?b=c', { headers })
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(sentUrls(), ['https://hidden.example/secret-path/a?token=hidden&b=c'])
    })
  }

  test('goes to the URL as it is configured, slash included, if it asks for no path', async () => {
    const destination_url = 'https://hidden.example/api/'
    const headers = { 'bt-api-key': key, 'BT-PROXY-KEY': await configure({ destination_url }) }
    for (const path of ['/proxy', '/proxy/', '/proxy/a']) await ask(path, headers)
    assert.deepEqual(sentUrls(), [destination_url, destination_url, `${destination_url}a`])
  })

  test('whatever BT-PROXY-URL it sends besides', async () => {
    const headers = {
      'bt-api-key': key,
      'BT-PROXY-KEY': asking,
      'BT-PROXY-URL': 'https://a.example',
    }
    assert.equal((await ask('/proxy', headers)).status, 200)
    assert.deepEqual(sentUrls(), ['https://hidden.example/secret-path?token=hidden'])
  })

  test('may do so in the query, from where the key is taken away', async () => {
    for (const query of [`bt-proxy-key=${asking}&x=1`, `x=1&bt%2Dproxy-key=${asking}`]) {
      assert.equal((await ask(`/proxy/a?${query}`, { 'bt-api-key': key })).status, 200)
    }
    const url = 'https://hidden.example/secret-path/a?token=hidden&x=1'
    assert.deepEqual(sentUrls(), [url, url])
  })

  test('has its expressions replaced by what its caller may use', async () => {
    const body = { type: 'token', data: 'plain' }
    const id = (await vault.call('POST', '/tokens', { key, body })).json()['id'] as string
    const headers = { 'bt-api-key': key, 'BT-PROXY-KEY': open, 'content-type': 'application/json' }
    assert.equal((await ask('/proxy', headers, `{"a":"{{${id}}}"}`)).status, 200)
    assert.equal(vault.world.egress.sent[0]!.body.toString(), '{"a":"plain"}')
  })

  test('needs the permission all the same', async () => {
    const other = await vault.keyFor({ permissions: ['token:create'] })
    for (const it of [asking, open]) {
      const reply = await ask('/proxy', { 'bt-api-key': other, 'BT-PROXY-KEY': it })
      assert.equal(reply.status, 403)
      assert.equal(codeOf(reply), 'permission_missing')
    }
  })

  test('is held to the destinations of its application', async () => {
    const by = await vault.keyFor({ permissions: ['token:use'], destinations: ['a.example'] })
    const reply = await ask('/proxy', { 'bt-api-key': by, 'BT-PROXY-KEY': asking })
    assert.equal(reply.status, 400)
    assert.equal(codeOf(reply), 'destination_refused')
    assert.ok(!reply.text.includes('hidden'))
  })

  test('is proxy_not_found for a key that does not exist, or of another tenant', async () => {
    const theirs = await configure({}, await vault.addTenant('other'))
    for (const it of ['nobody', theirs]) {
      const reply = await ask('/proxy', { 'bt-api-key': key, 'BT-PROXY-KEY': it })
      assert.equal(reply.status, 404)
      assert.equal(codeOf(reply), 'proxy_not_found')
    }
  })

  test('is query_invalid with two keys in the query', async () => {
    const query = `bt-proxy-key=${asking}&bt-proxy-key=${open}`
    const reply = await ask(`/proxy?${query}`, { 'bt-api-key': key })
    assert.equal(codeOf(reply), 'query_invalid')
  })

  test('is query_invalid with one in the header and another in the query, and sent with the same twice', async () => {
    const inQuery = `/proxy?bt-proxy-key=${open}`
    for (const headers of [{ 'bt-api-key': key }, {}]) {
      for (const other of [asking, '']) {
        const reply = await ask(inQuery, { ...headers, 'BT-PROXY-KEY': other })
        assert.equal(reply.status, 'bt-api-key' in headers ? 400 : 401)
      }
    }
    assert.deepEqual(sentUrls(), [])
    const two = await ask(inQuery, { 'bt-api-key': key, 'BT-PROXY-KEY': asking })
    assert.equal(codeOf(two), 'query_invalid')
    assert.equal((await ask(inQuery, { 'BT-PROXY-KEY': open })).status, 200)
  })

  test('shows by a dry run no more of the destination than its host', async () => {
    const headers = { 'bt-api-key': key, 'BT-PROXY-KEY': asking, 'BT-PROXY-DRY-RUN': 'true' }
    const reply = await ask('/proxy/a?b=c', headers)
    const { request, destination } = reply.json() as Record<string, JsonObject>
    assert.equal(request!['url'], 'https://hidden.example/[not shown]/a?b=c')
    assert.equal(destination!['host'], 'hidden.example')
    assert.ok(!/secret-path|token=hidden/.test(reply.text))
  })
})

describe('without an API key', () => {
  test('a proxy that asks for none forwards, and expressions stay what they are', async () => {
    const body = { type: 'token', data: 'plain' }
    const id = (await vault.call('POST', '/tokens', { key, body })).json()['id'] as string
    const raw = `{"a":"{{${id}}}"}`
    for (const path of ['/proxy', `/proxy?bt-proxy-key=${open}`]) {
      const headers = { 'content-type': 'application/json' }
      const named = path === '/proxy' ? { ...headers, 'BT-PROXY-KEY': open } : headers
      const reply = await ask(path, named, raw)
      assert.equal(reply.status, 200, reply.text)
      assert.equal(vault.world.egress.sent.at(-1)!.body.toString(), raw)
    }
  })

  test('it is in the audit log as done by the proxy, with the destination, before anything is sent', async () => {
    let event: unknown
    vault.world.egress.reply = () => {
      const [it] = vault.world.committed
        .flatMap((change) => (change.kind === 'append-audit-events' ? change.events.slice(-1) : []))
        .slice(-1)
      event = [
        it!.entityType,
        it!.operation,
        it!.destination,
        it!.applicationId === it!.entityIds[0],
      ]
      return { status: 200 }
    }
    await ask('/proxy', { 'BT-PROXY-KEY': open })
    assert.deepEqual(event, ['proxy', 'invoke', 'hidden.example', true])
  })

  test('a proxy that asks for one, and one there is not, are the same key_missing', async () => {
    const replies = [asking, 'nobody', ''].map((it) =>
      ask('/proxy', { 'BT-PROXY-KEY': it, 'BT-TRACE-ID': 'x' }),
    )
    const texts = (await Promise.all(replies)).map((it) => {
      assert.equal(it.status, 401)
      assert.equal(codeOf(it), 'key_missing')
      return it.text
    })
    assert.equal(new Set(texts).size, 1)
  })

  test('a caller does not learn by a dry run where a proxy leads, and none is recorded as invoked', async () => {
    const recorded = vault.world.committed.length
    const reply = await ask('/proxy', { 'BT-PROXY-KEY': open, 'BT-PROXY-DRY-RUN': 'true' })
    assert.equal(reply.status, 401)
    assert.ok(!reply.text.includes('hidden'))
    assert.deepEqual(vault.world.committed.slice(recorded), [])
  })

  test('a proxy opens no other operation, and an API key that is wrong stays wrong', async () => {
    const headers = { 'BT-PROXY-KEY': open }
    assert.equal((await vault.call('GET', '/tokens', { headers })).status, 401)
    assert.equal((await ask('/proxy', { ...headers, 'bt-api-key': 'key_of_nobody' })).status, 401)
    assert.equal((await ask('/proxy', { ...headers, 'bt-api-key': '' })).status, 401)
    assert.deepEqual(sentUrls(), [])
  })

  test('the next request after the proxy was closed is refused', async () => {
    const listed = (await vault.call('GET', '/proxies', { key: vault.managementKey })).json()
    const { id } = (listed['data'] as JsonObject[]).find((it) => it['key'] === open)!
    const body = { require_auth: true }
    const path = `/proxies/${id as string}`
    const patched = await vault.call('PATCH', path, { key: vault.managementKey, body })
    assert.equal(patched.status, 204, patched.text)
    assert.equal((await ask('/proxy', { 'BT-PROXY-KEY': open })).status, 401)
  })
})

describe('a request that code sends from inside by the key of a proxy', () => {
  test('is held to what the code lists, with an API key and without', async () => {
    const inProcessCaller = { tenantId: vault.tenantId, destinations: ['a.example'] }
    const listed = await configure({ destination_url: 'https://a.example', require_auth: false })
    for (const headers of [{ 'bt-api-key': key }, {}]) {
      const call = (proxy: string, inProcess?: InProcessCaller): Promise<Reply> =>
        vault.call('POST', '/proxy', { headers: { ...headers, 'BT-PROXY-KEY': proxy }, inProcess })
      const sent = sentUrls().length
      const refused = await call(open, inProcessCaller)
      assert.equal(refused.status, 400)
      assert.match(refused.text, /"destination_refused"/)
      assert.equal(sentUrls().length, sent)
      assert.equal((await call(listed, inProcessCaller)).status, 200)
      assert.equal((await call(open, { ...inProcessCaller, destinations: null })).status, 200)
      assert.equal((await call(open)).status, 200)
    }
  })
})

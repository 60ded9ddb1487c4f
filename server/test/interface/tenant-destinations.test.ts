/** The destinations of a tenant: their form, and that whatever sends for an application is held to them as well as to its own. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { JsonObject } from '../../src/base/json.ts'
import { DESTINATIONS_MAX, IDENTITY_CACHE_MS, STREAM_CHECK_MS } from '../../src/base/limits.ts'
import { callbackStage, type CallbackStage } from '../kit/callback-stage.ts'
import {
  passes,
  targets,
  wideDestinationLists,
  type DestinationList,
  type SentTo,
} from '../kit/destination-model.ts'
import * as fc from '../kit/fast-check.ts'
import { holdBody } from '../kit/held-request.ts'
import { returned } from '../kit/still-runner.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'
import { pathsOf } from '../kit/token-stage.ts'

const LISTED = ['api.example.com', '*.example.org:8443']

describe('PUT /tenants/self answers', () => {
  test('200 with the destinations in one written form, each once, after the settings', async () => {
    const vault = await stillVault()
    const destinations = ['API.example.com.', '*.Example.org:8443', 'api.example.com']
    const reply = await put(vault, { destinations })
    assert.equal(reply.status, 200, reply.text)
    assert.deepEqual(reply.json()['destinations'], LISTED)
    const members = Object.keys(reply.json())
    assert.equal(members[members.indexOf('settings') + 1], 'destinations')
    assert.deepEqual((await get(vault)).json(), reply.json())
  })

  test('200 with those of before where they are not mentioned, and lifts the limit by null', async () => {
    const vault = await stillVault()
    assert.equal('destinations' in (await get(vault)).json(), false)
    await put(vault, { destinations: LISTED })
    const settings = { fingerprint_tokens: true }
    assert.deepEqual((await put(vault, { settings })).json()['destinations'], LISTED)
    assert.deepEqual((await put(vault, (await get(vault)).json())).json()['destinations'], LISTED)
    assert.deepEqual((await put(vault, { destinations: [] })).json()['destinations'], [])
    assert.deepEqual((await get(vault)).json()['destinations'], [])
    assert.equal('destinations' in (await put(vault, { destinations: null })).json(), false)
    assert.equal('destinations' in (await get(vault)).json(), false)
  })

  const bad: [what: string, body: JsonObject, path: string][] = [
    ['a URL', { destinations: ['a.example', 'https://b.example'] }, 'destinations[1]'],
    ['a star alone', { destinations: ['*'] }, 'destinations[0]'],
    ['a block', { destinations: ['10.0.0.0/8'] }, 'destinations[0]'],
    ['no text', { destinations: [null] }, 'destinations[0]'],
    ['no list', { destinations: 'a.example' }, 'destinations'],
    ['too many', { destinations: names(DESTINATIONS_MAX + 1) }, 'destinations'],
    ['destinations as a setting', { settings: { destinations: 'a.example' } }, 'settings'],
    ['an exemption as a setting', { settings: { egress_allow: '10.0.0.0/8' } }, 'settings'],
  ]
  for (const [what, body, path] of bad) {
    test(`400 to ${what}, and changes nothing`, async () => {
      const vault = await stillVault()
      await put(vault, { destinations: LISTED })
      const before = (await get(vault)).json()
      const reply = await put(vault, body)
      assert.equal(reply.status, 400)
      assert.deepEqual(pathsOf(reply), [path])
      assert.deepEqual((await get(vault)).json(), before)
    })
  }

  test('200 with an exemption ignored, as any unknown member', async () => {
    const vault = await stillVault()
    const before = (await vault.world.store.tenants.find(vault.tenantId))!
    await put(vault, { egress_allow: ['10.0.0.0/8'], allow: ['10.0.0.0/8'] })
    const after = (await vault.world.store.tenants.find(vault.tenantId))!
    assert.deepEqual(after.settings, before.settings)
    assert.deepEqual(Object.keys(after), Object.keys(before))
  })

  test('403 without tenant:update, whatever else the key may change', async () => {
    const vault = await stillVault()
    const permissions = ['application:update', 'application:create', 'tenant:read']
    const key = await vault.keyFor({ type: 'management', permissions })
    const body = { name: 'x', destinations: [] }
    const reply = await vault.call('PUT', '/tenants/self', { key, body })
    assert.equal(reply.status, 403)
  })

  test('200 once the change is in the audit log', async () => {
    const vault = await stillVault()
    await put(vault, { destinations: LISTED })
    const reply = await vault.call('GET', '/logs', { key: vault.managementKey })
    const [last] = reply.json()['data'] as JsonObject[]
    assert.deepEqual(
      [last!['entity_type'], last!['operation'], last!['entity_id']],
      ['tenant', 'update', vault.tenantId],
    )
  })
})

describe('what is sent for a tenant', () => {
  test('goes where the tenant, the applications and the callback’s moment allow, and nowhere else', async (t) => {
    const stage = await modelStage()
    const round = fc.record({
      lists: fc.record({
        tenant: wideDestinationLists,
        caller: wideDestinationLists,
        acting: wideDestinationLists,
        opener: wideDestinationLists,
      }),
      later: fc.record({ tenant: wideDestinationLists, caller: wideDestinationLists }),
      target: targets,
    })
    await fc.assert(
      fc.asyncProperty(round, async ({ lists, later, target }) => {
        await stage.set(lists)
        const { tenant, caller, acting, opener } = lists
        const may = (...by: DestinationList[]): boolean => passes([tenant, ...by], target)
        const went = await stage.send(target)
        assert.deepEqual(went, {
          'by a key': may(caller),
          'by a session': may(caller, opener),
          'by a proxy, with a key': may(caller),
          'by a proxy, without a key': may(),
          'by code': may(caller, acting),
          'by code, through the vault': may(caller, acting),
          'by code, through the vault and a proxy without a key': may(caller, acting),
          'to a callback, as accepted': may(caller),
        })
        await stage.set({ ...lists, ...later })
        const delivered = may(caller) && passes([later.tenant, later.caller], target)
        const { sent, code } = await stage.deliver()
        assert.equal(sent, delivered)
        if (may(caller))
          assert.equal(passes([code!], target), delivered && passes([acting], target))
        for (const [what, sent] of Object.entries({ ...went, 'to a callback': delivered })) {
          stage.count(what, sent)
        }
      }),
      { numRuns: 50 },
    )
    for (const [what, [sent, refused]] of stage.counts) {
      t.diagnostic(`${what}: ${sent} sent, ${refused} refused`)
      assert.ok(sent >= 2 && refused >= 2, `${what}: ${sent} sent, ${refused} refused`)
    }
    await stage.close()
  })

  test('is refused before the name is resolved, and says by which rule', async () => {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: ['token:use'], destinations: ['a.example'] })
    await put(vault, { destinations: ['b.example'] })
    vault.world.egress.refuse = () => assert.fail('it was looked at')
    const reply = await vault.call('POST', '/proxy', {
      key,
      headers: { 'BT-PROXY-URL': 'https://a.example' },
    })
    assert.equal(reply.status, 400)
    const { code, errors } = reply.json()['proxy_error'] as JsonObject
    assert.equal(code, 'destination_refused')
    assert.deepEqual(errors, {
      destination: [
        'It is not among the destinations that the application and the tenant both allow.',
      ],
      rule: ['unlisted'],
    })
  })

  test('stops where the tenant allows it no longer, while the body is held back', async () => {
    for (const keyless of [false, true]) {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: ['proxy:invoke'] })
      const body = { name: 'p', destination_url: 'https://a.example', require_auth: !keyless }
      const made = await vault.call('POST', '/proxies', { key: vault.managementKey, body })
      const release = await holdBody(vault, 'POST', '/proxy', {
        ...(keyless ? {} : { key }),
        body: { a: 'secret' },
        headers: { 'bt-proxy-key': made.json()['key'] as string },
      })
      await put(vault, { destinations: ['b.example'] })
      // Another server may believe for so long what it looked up before the change.
      vault.world.clock.elapse(IDENTITY_CACHE_MS)
      // Without a key the body is forwarded as it comes, and checked now and then: each time the store is asked.
      const { clock, egress } = vault.world
      const looksMax = keyless ? 10_000 : 0
      for (let n = 0; n < looksMax && egress.aborted === 0; n++) {
        clock.elapse(STREAM_CHECK_MS)
        await pause(1)
      }
      const reply = await release()
      assert.equal(reply.status, 400, reply.text)
      assert.equal(vault.world.egress.sent.length, 0)
      await vault.close()
    }
  })

  test('of another tenant goes where it did', async () => {
    const vault = await stillVault()
    const theirs = await vault.addTenant('theirs')
    await put(vault, { destinations: [] })
    const body = { name: 'x', type: 'private', permissions: ['token:use'] }
    const made = await vault.call('POST', '/applications', { key: theirs, body })
    const reply = await vault.call('POST', '/proxy', {
      key: made.json()['key'] as string,
      headers: { 'BT-PROXY-URL': 'https://a.example' },
    })
    assert.equal(reply.status, 200, reply.text)
  })
})

type Lists = Record<'tenant' | 'caller' | 'acting' | 'opener', DestinationList>

/** A tenant that sends by everything there is, whose lists tests set. */
async function modelStage() {
  const stage = await callbackStage({
    caller: { permissions: ['token:use'] },
    application: { permissions: ['token:use'] },
    // No delivery is tried again in the next round.
    callbackRetryBaseMs: 3_600_000,
  })
  const { vault, manage, react, runner, ran, sent } = stage
  const { session, openerId } = await sessionOf(stage)
  const counts = new Map<string, [sent: number, refused: number]>()
  const setList = async (id: string, destinations: DestinationList): Promise<void> => {
    const permissions = id === openerId ? ['token:create'] : ['token:use']
    const body = { name: 'x', permissions, destinations: destinations && [...destinations] }
    const reply = await manage('PUT', `/applications/${id}`, body)
    assert.equal(reply.status, 200, reply.text)
  }

  return {
    counts,
    close: () => vault.close(),
    set: async ({ tenant, caller, acting, opener }: Lists): Promise<void> => {
      const reply = await put(vault, { destinations: tenant && [...tenant] })
      assert.equal(reply.status, 200, reply.text)
      await setList(stage.callerId, caller)
      await setList(stage.applicationId!, acting)
      await setList(openerId, opener)
    },
    count: (what: string, went: boolean): void => {
      const [sent, refused] = counts.get(what) ?? [0, 0]
      counts.set(what, went ? [sent + 1, refused] : [sent, refused + 1])
    },
    /** Tries to send to a target by everything there is; returns what was sent. */
    send: async (target: SentTo): Promise<Record<string, boolean>> => {
      const url = `https://${target.join(':')}/`
      const proxyKey = async (requireAuth: boolean): Promise<string> => {
        const body = { name: 'x', destination_url: url, require_auth: requireAuth }
        return (await manage('POST', '/proxies', body)).json()['key'] as string
      }
      const [asking, open] = [await proxyKey(true), await proxyKey(false)]
      const proxied = async (
        headers: Record<string, string>,
        from: Omit<Parameters<StillVault['call']>[2] & object, 'headers'> = {},
      ): Promise<boolean> => wentOut(await vault.call('POST', '/proxy', { headers, ...from }))
      const byUrl = { 'BT-PROXY-URL': url }

      const byCode: boolean[] = []
      runner.behave = async ({ tenantId, destinations, apiKey }) => {
        const inProcess = { tenantId, destinations }
        byCode.push(await proxied(byUrl, { key: apiKey!, inProcess }))
        byCode.push(await proxied({ 'BT-PROXY-KEY': open }, { inProcess }))
        return returned({})
      }
      assert.equal((await react({})).status, 200)
      runner.behave = () => returned({})
      const accepted = await react({ callback_url: url })
      return {
        'by a key': await proxied(byUrl, { key: stage.key }),
        'by a session': await proxied(byUrl, { key: session }),
        'by a proxy, with a key': await proxied({ 'BT-PROXY-KEY': asking }, { key: stage.key }),
        'by a proxy, without a key': await proxied({ 'BT-PROXY-KEY': open }),
        'by code': passes([ran().destinations], target),
        'by code, through the vault': byCode[0]!,
        'by code, through the vault and a proxy without a key': byCode[1]!,
        'to a callback, as accepted': wentOut(accepted),
      }
    },
    /** Runs what was accepted and tries to deliver it once; returns whether that was sent, and where the code could send to. */
    deliver: async (): Promise<{ sent: boolean; code: DestinationList | undefined }> => {
      const [sentBefore, ranBefore] = [sent.length, runner.ran.length]
      await stage.work()
      return { sent: sent.length > sentBefore, code: runner.ran[ranBefore]?.destinations }
    },
  }
}

/** Returns whether it was sent; throws unless it was, or was refused because it is not listed. */
function wentOut(reply: Reply): boolean {
  if (reply.status !== 400) assert.ok([200, 202].includes(reply.status), reply.text)
  else assert.match(reply.text, /"rule":\["unlisted"\]/)
  return reply.status !== 400
}

/** Opens a session that acts for the caller of the stage. */
async function sessionOf({ vault, manage, key }: CallbackStage) {
  const opener = { name: 'page', type: 'public', permissions: ['token:create'] }
  const made = (await manage('POST', '/applications', opener)).json()
  const opened = (await vault.call('POST', '/sessions', { key: made['key'] as string })).json()
  const body = { nonce: opened['nonce']!, permissions: ['token:use'] }
  const authorized = await vault.call('POST', '/sessions/authorize', { key, body })
  assert.equal(authorized.status, 200, authorized.text)
  return { session: opened['session_key'] as string, openerId: made['id'] as string }
}

function put(vault: StillVault, body: JsonObject): Promise<Reply> {
  return vault.call('PUT', '/tenants/self', {
    key: vault.managementKey,
    body: { name: 'first', ...body },
  })
}

function get(vault: StillVault): Promise<Reply> {
  return vault.call('GET', '/tenants/self', { key: vault.managementKey })
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `host-${n}.example`)
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { AUDIT_EVENT_ENTITIES_MAX } from '../../src/base/limits.ts'
import type { AuditEvent } from '../../src/ports/audit-log.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'
import { REVEAL_ALL, tokenStage } from '../kit/token-stage.ts'

describe('GET /logs answers', () => {
  test('200 with what setting up did, newest first', async () => {
    const vault = await stillVault()
    const { data, pagination } = await logs(vault)
    assert.deepEqual(pagination, {
      total_items: 3,
      page_number: 1,
      page_size: 20,
      total_pages: 1,
    })
    const [key, application, tenant] = data
    assert.deepEqual(data.map(briefly), [
      'allowed create application_key',
      'allowed create application',
      'allowed create tenant',
    ])
    assert.deepEqual(tenant, {
      id: '1-1',
      tenant_id: vault.tenantId,
      actor_id: application!['entity_id'],
      actor_type: 'application',
      key_id: key!['entity_id'],
      trace_id: 'set-up',
      entity_type: 'tenant',
      entity_id: vault.tenantId,
      operation: 'create',
      result: 'allowed',
      message: 'Tenant created',
      created_at: '2026-03-01T12:00:00.000+00:00',
    })
  })

  test('200 with every token of a bulk, in one audit event', async () => {
    const stage = await tokenStage()
    const headers = { 'bt-trace-id': 'the bulk' }
    const reply = await stage.vault.call('POST', '/tokenize', {
      key: stage.key,
      body: ['a', 'b', 'c'],
      headers,
    })
    const ids = JSON.parse(reply.text) as string[]
    const { data } = await logs(stage.vault, '?entity_type=token')
    assert.deepEqual(
      data.map((it) => it['entity_id']),
      ids.toReversed(),
    )
    assert.deepEqual(new Set(data.map((it) => it['trace_id'])), new Set(['the bulk']))
    assert.equal(new Set(data.map((it) => (it['id'] as string).split('-')[0])).size, 1)
  })

  test('200 with a bulk of more tokens than one event names', async () => {
    const stage = await tokenStage({ tokensMax: 3000 })
    const count = AUDIT_EVENT_ENTITIES_MAX * 2 + 1
    const body = Array.from({ length: count }, (_, n) => `value ${n}`)
    const reply = await stage.vault.call('POST', '/tokenize', { key: stage.key, body })
    const ids = JSON.parse(reply.text) as string[]
    const found: Json[] = []
    for (let page = 1; ; page++) {
      const { data, pagination } = await logs(stage.vault, `?size=100&page=${page}`)
      if (data.length === 0) break
      found.push(
        ...data.filter((it) => it['entity_type'] === 'token').map((it) => it['entity_id']!),
      )
      assert.equal(pagination['total_items'], count + (await others(stage.vault)))
    }
    assert.deepEqual(found, ids.toReversed())
  })

  test('200 with who read which token, and how much of it', async () => {
    const stage = await tokenStage()
    const { vault } = stage
    const made = await vault.call('POST', '/tokens', { key: stage.key, body: { data: 'x' } })
    const id = made.json()['id'] as string
    for (const transform of ['reveal', 'mask', 'redact']) {
      const rules = [{ ...REVEAL_ALL, transform, permissions: ['token:read'] }]
      await vault.call('GET', `/tokens/${id}`, { key: await vault.keyFor({ rules }) })
    }
    const elsewhere = [{ ...REVEAL_ALL, container: '/else/', permissions: ['token:read'] }]
    const key = await vault.keyFor({ rules: elsewhere })
    assert.equal((await vault.call('GET', `/tokens/${id}`, { key })).status, 403)
    const { data } = await logs(vault, `?entity_id=${id}`)
    assert.deepEqual(
      data.map((it) => it['message']),
      [
        'Refused: read token, without token:read',
        'Token read: no data shown',
        'Token read: mask shown',
        'Token read: data shown',
        'Token created',
      ],
    )
    assert.equal(new Set(data.map((it) => it['actor_id'])).size, 5)
  })

  test('200 with where tokens were sent, and where not', async () => {
    const { world, tenantId, ...vault } = await stillVault()
    const event: AuditEvent = {
      at: world.clock.now(),
      applicationId: tenantId,
      keyId: tenantId,
      traceId: 'trace',
      entityType: 'token',
      operation: 'use',
      allowed: true,
      changed: false,
      permission: 'proxy:invoke',
      shown: 'reveal',
      replayed: false,
      dryRun: false,
      destination: 'api.example.com:8443',
      entityIds: [tenantId],
    }
    const invoked = { entityType: 'proxy', operation: 'invoke', shown: null } as const
    const events = [
      event,
      { ...event, ...invoked, entityIds: [] },
      { ...event, ...invoked, allowed: false, destination: 'elsewhere.example', entityIds: [] },
      { ...event, destination: null },
    ]
    await world.store.commit(tenantId, [{ kind: 'append-audit-events', events }])
    const { data } = await logs({ ...vault, world, tenantId }, '?size=4')
    assert.deepEqual(
      data.map((it) => [it['message'], it['destination'] ?? null]),
      [
        ['Token used: data shown', null],
        [
          'Refused: invoke proxy, without proxy:invoke toward elsewhere.example',
          'elsewhere.example',
        ],
        ['Proxy invoked toward api.example.com:8443', 'api.example.com:8443'],
        ['Token used: data shown to api.example.com:8443', 'api.example.com:8443'],
      ],
    )
  })

  test('200 with a duplicate that was shown, and an answer that was repeated', async () => {
    const stage = await tokenStage({ settings: { deduplicateTokens: true } })
    const { vault } = stage
    const rules = [{ ...REVEAL_ALL, permissions: ['token:create', 'token:read'] }]
    const key = await vault.keyFor({ rules })
    const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 }
    const body = { type: 'card', data: card, deduplicate_token: true }
    const first = await vault.call('POST', '/tokens', { key, body })
    const headers = { 'bt-idempotency-key': 'again' }
    for (let n = 0; n < 2; n++) {
      const duplicate = await vault.call('POST', '/tokens', { key, body, headers })
      assert.equal(duplicate.json()['id'], first.json()['id'])
    }
    const { data } = await logs(vault, '?entity_type=token')
    assert.deepEqual(
      data.map((it) => [it['message'], it['entity_id'] ?? null]),
      [
        ['Token created before: the answer was repeated', null],
        ['Token found as a duplicate: data shown', first.json()['id']],
        ['Allowed: create token', null],
        ['Token created', first.json()['id']],
      ],
    )
  })

  test('200 with what is refused on admission', async () => {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: ['token:create'] })
    assert.equal((await vault.call('GET', '/tokens/4242424242424242', { key })).status, 403)
    assert.equal((await vault.call('GET', '/logs', { key })).status, 403)
    const { data } = await logs(vault, '?size=1')
    assert.equal(data[0]!['message'], 'Refused: read token, without token:read')
    assert.equal('entity_id' in data[0]!, false)
    const own = await logs(vault, '?entity_type=log')
    assert.ok(own.data.map(briefly).includes('refused read log'))
  })

  test('200 with everything that is done to applications and their keys', async () => {
    const vault = await stillVault()
    const key = vault.managementKey
    const call = async (method: 'POST' | 'PUT' | 'DELETE' | 'GET', path: string, body?: Json) => {
      const reply = await vault.call(method, path, { key, ...(body === undefined ? {} : { body }) })
      assert.ok(reply.status < 300, reply.text)
      return reply.text === '' ? {} : reply.json()
    }
    const grants = { name: 'a', permissions: ['token:create'] }
    const { id } = await call('POST', '/applications', { ...grants, type: 'private' })
    const path = `/applications/${id as string}`
    await call('PUT', path, grants)
    await call('POST', `${path}/regenerate`)
    const added = await call('POST', `${path}/keys`)
    await call('DELETE', `${path}/keys/${added['id'] as string}`)
    await call('GET', path)
    await call('DELETE', path)
    const { data } = await logs(vault)
    assert.deepEqual(data.map(briefly).slice(0, -3), [
      'allowed delete application',
      'allowed read application',
      'allowed delete application_key',
      'allowed create application_key',
      'allowed create application_key',
      'allowed delete application_key',
      'allowed update application',
      'allowed create application_key',
      'allowed create application',
    ])
  })

  test('200 with what is in a time, its beginning included and its end not', async () => {
    const vault = await stillVault()
    vault.world.clock.pass(60_000)
    await vault.keyFor({ permissions: ['token:create'] })
    const count = async (query: string): Promise<number> => (await logs(vault, query)).data.length
    assert.equal(await count('?start_date=2026-03-01T12:01:00Z'), 2)
    assert.equal(await count('?start_date=2026-03-01T12:01:00.001Z'), 0)
    assert.equal(await count('?end_date=2026-03-01T13:01:00%2B01:00'), 3)
    assert.equal(await count('?end_date=2026-03-01T12:01:00.001Z'), 5)
    assert.equal(await count('?start_date=2026-03-01&end_date=2026-03-02'), 5)
    assert.equal(await count('?start_date=2026-03-02'), 0)
    assert.equal(await count('?entity_type=application&start_date=&entity_id='), 2)
  })

  test('200 with the items of a token that goes by an id of its own, which is not in the audit log', async () => {
    const stage = await tokenStage()
    const { vault } = stage
    const secret = '4242424242424242'
    const body = { type: 'token', data: secret, id: '{{ data }}' }
    assert.equal((await vault.call('POST', '/tokens', { key: stage.key, body })).status, 201)
    assert.equal((await vault.call('GET', `/tokens/${secret}`, { key: stage.key })).status, 200)
    const { data } = await logs(vault, `?entity_id=${secret}`)
    assert.deepEqual(
      data.map((it) => it['message']),
      ['Token read: mask shown', 'Token created'],
    )
    assert.ok(!JSON.stringify(data).includes(secret))
    const rows = await vault.world.store.auditLog.rowsAfter(vault.tenantId, 0, 100)
    assert.ok(rows.every((it) => !Buffer.from(it.entry).includes(secret)))
  })

  test('200 page after page until one is empty, however small they are', async () => {
    const vault = await stillVault()
    for (let n = 0; n < 5; n++) await vault.keyFor({ permissions: ['token:create'] })
    for (const query of ['', '&start_date=2020-01-01']) {
      const all = (await logs(vault, `?size=100${query}`)).data.map((it) => it['id'])
      assert.equal(all.length, 13)
      for (const size of [1, 4, 13]) {
        const turned: Json[] = []
        for (let page = 1; ; page++) {
          const { data } = await logs(vault, `?size=${size}&page=${page}${query}`)
          if (data.length === 0) break
          turned.push(...data.map((it) => it['id']!))
        }
        assert.deepEqual(turned, all)
      }
    }
  })

  test('200 without who read the audit log, but where that is asked for', async () => {
    const stage = await tokenStage()
    const { vault, key } = stage
    for (let n = 0; n < 3; n++) {
      await vault.call('POST', '/tokenize', { key, body: ['x'] })
      await logs(vault)
    }
    const all = await logs(vault, '?size=100')
    assert.equal(all.data.length, all.pagination['total_items'])
    assert.ok(all.data.every((it) => it['entity_type'] !== 'log'))
    assert.deepEqual((await logs(vault, '?size=2')).data, all.data.slice(0, 2))
    const readings = (await logs(vault, '?entity_type=log')).data
    assert.ok(readings.length > 3)
    const behind = await logs(vault, `?start=${readings.at(-1)!['id'] as string}&size=1`)
    assert.equal(behind.data[0]!['id'], all.data[2]!['id'])
  })

  test('200 from where the page before ended, to the end, and nothing new in between', async () => {
    const stage = await tokenStage()
    const { vault, key } = stage
    await vault.call('POST', '/tokenize', { key, body: ['a', 'b', 'c', 'd', 'e'] })
    const made = (await logs(vault, '?size=1')).data[0]!['entity_id'] as string
    for (const query of [
      '',
      '&start_date=2020-01-01',
      '&entity_type=token',
      `&entity_id=${made}`,
    ]) {
      for (const size of [1, 2, 3, 100]) {
        const all = (await logs(vault, `?size=100${query}`)).data.map((it) => it['id'])
        const read: Json[] = []
        for (let start = ''; ;) {
          const { data, pagination } = await logs(vault, `?size=${size}${query}${start}`)
          read.push(...data.map((it) => it['id']!))
          assert.equal(pagination['next'], pagination['after'])
          if (pagination['after'] === undefined) break
          assert.equal(pagination['after'], data.at(-1)!['id'])
          start = `&start=${pagination['after'] as string}`
          if (read.length < 3) await vault.call('POST', '/tokenize', { key, body: ['new'] })
        }
        assert.deepEqual(read, all, query)
      }
    }
    const [, second, third] = (await logs(vault)).data.map((it) => it['id'] as string)
    assert.equal((await logs(vault, `?start=${second!}`)).data[0]!['id'], third)
    assert.deepEqual((await logs(vault, '?start=1-1')).data, [])
    const beyond = await logs(vault, '?start=999999-1&page=2&size=1')
    assert.equal(beyond.data[0]!['id'], second)
  })

  test('400 to a start that is none', async () => {
    const vault = await stillVault()
    for (const start of ['x', '1', '1-', '-1', '1-1-1', '99999999999999999-1']) {
      const reply = await vault.call('GET', `/logs?start=${start}`, { key: vault.managementKey })
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'cursor_invalid'])
    }
  })

  test('200 without anything of another tenant', async () => {
    const vault = await stillVault()
    const theirs = await vault.addTenant('theirs')
    await vault.keyFor({ permissions: ['token:create'] })
    const ours = await logs(vault)
    const reply = await vault.call('GET', '/logs', { key: theirs })
    const { data } = reply.json() as unknown as { data: JsonObject[] }
    assert.equal(data.length, 3)
    for (const it of ours.data) {
      assert.ok(!reply.text.includes(it['tenant_id'] as string))
      assert.ok(!reply.text.includes(it['entity_id'] as string))
      const query = `/logs?entity_id=${it['entity_id'] as string}`
      const found = await vault.call('GET', query, { key: theirs })
      assert.deepEqual((found.json() as unknown as { data: Json[] }).data, [])
    }
  })

  for (const query of [
    'start_date=yesterday',
    'end_date=2026-02-30T25:00:00Z',
    'start_date=2026-03-01&start_date=2026-03-02',
    'entity_type=token&entity_type=log',
    'page=x',
  ]) {
    test(`400 to ${query}`, async () => {
      const vault = await stillVault()
      const reply = await vault.call('GET', `/logs?${query}`, { key: vault.managementKey })
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], 'query_invalid')
    })
  }
})

test('GET /logs/entity-types answers with the kinds, in a plain array', async () => {
  const vault = await stillVault()
  const reply = await vault.call('GET', '/logs/entity-types', { key: vault.managementKey })
  const kinds = JSON.parse(reply.text) as JsonObject[]
  assert.deepEqual(kinds[0], { display_name: 'Application', value: 'application' })
  assert.ok(kinds.some((it) => it['value'] === 'token'))
})

interface Listed {
  readonly pagination: JsonObject
  readonly data: JsonObject[]
}

async function logs(vault: StillVault, query = ''): Promise<Listed> {
  const reply = await vault.call('GET', `/logs${query}`, { key: vault.managementKey })
  assert.equal(reply.status, 200, reply.text)
  return JSON.parse(reply.text) as Listed
}

function briefly(item: JsonObject): string {
  return `${item['result'] as string} ${item['operation'] as string} ${item['entity_type'] as string}`
}

/** How many items are about something else than tokens. */
async function others(vault: StillVault): Promise<number> {
  let count = 0
  for (const it of ['tenant', 'application', 'application_key']) {
    count += (await logs(vault, `?entity_type=${it}`)).data.length
  }
  return count
}

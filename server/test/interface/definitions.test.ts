/** Rules that hold for everything tenants define by name: proxies and reactors. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { NAME_FILTER_CHARS_MAX } from '../../src/base/limits.ts'
import type { Conflict } from '../../src/ports/change.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../kit/still-vault.ts'
import { pathsOf } from '../kit/token-stage.ts'

const NOBODYS_ID = '01945d00-0000-4000-8000-0000000000ff'

interface DefinitionCase {
  readonly path: string
  readonly word: 'proxy' | 'reactor'
  readonly body: JsonObject
  readonly changed: Conflict
}

const KINDS: readonly DefinitionCase[] = [
  {
    path: '/proxies',
    word: 'proxy',
    body: { name: 'Payments', destination_url: 'https://api.example.com/v1' },
    changed: { kind: 'proxy-changed' },
  },
  {
    path: '/reactors',
    word: 'reactor',
    body: { name: 'Payments', code: 'module.exports = () => ({})', configuration: {} },
    changed: { kind: 'reactor-changed' },
  },
]

for (const { path, word, body, changed } of KINDS) {
  describe(`GET ${path} answers`, () => {
    test('200 newest first, in pages, each as it is when asked for alone', async () => {
      const { call, list, make, vault } = await stage()
      for (const name of ['a', 'b', 'c']) {
        vault.world.clock.pass(1)
        await make({ name })
      }
      const { pagination, data } = await list('?size=2')
      assert.deepEqual(pagination, { total_items: 3, page_number: 1, page_size: 2, total_pages: 2 })
      assert.deepEqual(
        data.map((it) => it['name']),
        ['c', 'b'],
      )
      for (const it of data) {
        assert.deepEqual((await call('GET', `${path}/${it['id'] as string}`)).json(), it)
      }
    })

    test('200 with those of the ids and of the names that were asked for', async () => {
      const { list, make } = await stage()
      const ids: string[] = []
      for (const name of ['Payments', 'other payments', 'Ship']) {
        ids.push((await make({ name }))['id'] as string)
      }
      const names = async (query: string) => {
        const { data } = await list(query)
        return data.map((it) => it['name'] as string).sort()
      }
      assert.deepEqual(await names('?name=PAY'), ['Payments', 'other payments'])
      assert.deepEqual(await names('?name=pay*'), ['Payments'])
      assert.deepEqual(await names('?name='), ['Payments', 'Ship', 'other payments'])
      const some = `?id=${ids[0]}&id=${ids[2]}&id=${NOBODYS_ID}`
      assert.deepEqual(await names(some), ['Payments', 'Ship'])
      assert.deepEqual(await names(`?id=${ids[2]}&name=pay`), [])
      assert.deepEqual(await names('?id=none'), [])
    })

    test('200 whatever the case of an id, in the path and in a query', async () => {
      const { call, list, make } = await stage()
      const id = (await make({ name: 'a' }))['id'] as string
      assert.equal((await call('GET', `${path}/${id.toUpperCase()}`)).json()['id'], id)
      const { data, pagination } = await list(`?id=${id.toUpperCase()}&id=${id}`)
      assert.deepEqual([data.length, pagination.total_items], [1, 1])
    })

    test('400 to a name given twice, a name that is too long, and a page there is not', async () => {
      const { call } = await stage()
      for (const [query, at] of [
        ['name=a&name=b', 'name'],
        [`name=${'a'.repeat(NAME_FILTER_CHARS_MAX + 1)}`, 'name'],
        ['size=101', 'size'],
      ] as const) {
        const reply = await call('GET', `${path}?${query}`)
        assert.deepEqual([reply.status, pathsOf(reply)], [400, [at]])
      }
    })
  })

  test(`POST and PUT ${path} take an application of no id for none`, async () => {
    const { call, make } = await stage()
    const whom = { name: 'x', type: 'private', permissions: ['token:use'] }
    const { id } = (await call('POST', '/applications', whom)).json()
    for (const application of [{}, { id: null }, null]) {
      const made = await make({ application: { id: id! } })
      const at = `${path}/${made['id'] as string}`
      const reply = await call('PUT', at, { ...body, application })
      assert.equal(reply.status, 200, reply.text)
      for (const it of [reply.json(), await make({ application })]) {
        assert.deepEqual([it['application'], it['application_id']], [undefined, undefined])
      }
    }
  })

  describe(`PATCH ${path}/{id} answers`, () => {
    test('415 to plain JSON', async () => {
      const { make, vault } = await stage()
      const reply = await vault.call('PATCH', `${path}/${(await make())['id'] as string}`, {
        key: vault.managementKey,
        body: { name: 'x' },
        headers: { 'content-type': 'application/json' },
      })
      assert.equal(reply.status, 415)
    })

    test('204 to many at once, and none of them is lost', async () => {
      const { call, make } = await stage()
      const at = `${path}/${(await make())['id'] as string}`
      const patches: JsonObject[] = [
        { name: 'Renamed' },
        ...Array.from({ length: 10 }, (_, n) => ({ configuration: { [`k${n}`]: 'v' } })),
      ]
      const replies = await Promise.all(patches.map((it) => call('PATCH', at, it)))
      assert.ok(replies.every((it) => it.status === 204))
      const now = (await call('GET', at)).json()
      assert.equal(now['name'], 'Renamed')
      assert.equal(Object.keys(now['configuration'] as JsonObject).length, 10)
    })

    test('409 when it is changed by others all the time', async () => {
      const { call, make } = await stage({ othersAreQuicker: true })
      const at = `${path}/${(await make())['id'] as string}`
      const reply = await call('PATCH', at, { name: 'x' })
      assert.deepEqual([reply.status, reply.json()['code']], [409, `${word}_busy`])
    })
  })

  describe(`DELETE ${path}/{id} answers`, () => {
    test('204, and it is gone', async () => {
      const { call, make } = await stage()
      const at = `${path}/${(await make())['id'] as string}`
      assert.equal((await call('DELETE', at)).status, 204)
      for (const method of ['GET', 'DELETE'] as const) {
        const reply = await call(method, at)
        assert.deepEqual([reply.status, reply.json()['code']], [404, `${word}_not_found`])
      }
    })
  })

  test(`what is done with ${path.slice(1)} is in the audit log, each with its id`, async () => {
    const { call, list, make } = await stage()
    const { id } = await make()
    const at = `${path}/${id as string}`
    await call('PATCH', at, { name: 'a' })
    await call('PUT', at, body)
    await call('GET', at)
    await call('DELETE', at)
    const { data } = await list(`?entity_type=${word}`, '/logs')
    const title = word[0]!.toUpperCase() + word.slice(1)
    assert.deepEqual(
      data.map((it) => [it['message'], it['entity_id'] ?? null]),
      [
        [`${title} deleted`, id],
        [`${title} read`, null],
        // The answer to PUT shows the key of a proxy.
        ...(word === 'proxy' ? [[`${title} read`, id]] : []),
        [`${title} updated`, id],
        [`${title} updated`, id],
        [`${title} created`, id],
      ],
    )
  })

  async function stage({ othersAreQuicker = false } = {}): Promise<DefinitionsStage> {
    const vault = await stillVault({
      change: (world) => ({
        ...world,
        store: {
          ...world.store,
          commit: async (tenantId, changes) =>
            othersAreQuicker && changes.some((it) => it.kind === 'update' && it.entity === word)
              ? changed
              : await world.store.commit(tenantId, changes),
        },
      }),
    })
    const key = vault.managementKey
    const call: DefinitionsStage['call'] = (method, at, sent) =>
      vault.call(method, at, { key, ...(sent !== undefined && { body: sent }) })
    return {
      vault,
      call,
      make: async (own = {}) => {
        const reply = await call('POST', path, { ...body, ...own })
        assert.equal(reply.status, 201, reply.text)
        return reply.json()
      },
      list: async (query, at = path) => {
        const reply = await call('GET', at + query)
        assert.equal(reply.status, 200, reply.text)
        return JSON.parse(reply.text) as { pagination: JsonObject; data: JsonObject[] }
      },
    }
  }
}

interface DefinitionsStage {
  readonly vault: StillVault
  readonly call: (method: Method, path: string, body?: Json) => Promise<Reply>
  readonly make: (own?: JsonObject) => Promise<JsonObject>
  readonly list: (
    query: string,
    path?: string,
  ) => Promise<{ pagination: JsonObject; data: JsonObject[] }>
}

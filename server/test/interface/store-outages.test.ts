import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ServiceError } from '../../src/base/service-error.ts'
import { methodsOf, type Endpoint } from '../../src/http/endpoint.ts'
import type { World } from '../../src/ports/world.ts'
import { stillRoutes } from '../kit/still-routes.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../kit/still-vault.ts'

const ALL = stillRoutes()
const ENDPOINTS = ALL.filter((it): it is Endpoint => 'handle' in it && !('stream' in it))

/** Operations that only read, although they are a POST. */
const READING_POSTS = ['/tokens/search', '/v2/tokens/search', '/detokenize']

const OF_READS = 'The store is not available; the request changed nothing. Retry later.'
const OF_WRITES = 'The outcome is unknown: repeat the request, preferably with an idempotency key.'

/** A vault whose store fails from `fail()` on, as a whole or only its commits. */
async function failingVault(only: 'commits' | 'everything') {
  let failing = false
  const fail = (): Promise<never> => Promise.reject(new ServiceError('store_unavailable'))
  const broken = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (from, name) => {
        const it: unknown = Reflect.get(from, name)
        if (typeof it === 'object' && it !== null) return broken(it)
        const breaks = failing && (only === 'everything' || name === 'commit')
        if (typeof it !== 'function') return it
        return breaks ? fail : it.bind(from)
      },
    })
  const change = (world: World): World => ({ ...world, store: broken(world.store) })
  const vault = await stillVault({ change })
  return { vault, fail: () => void (failing = true) }
}

function ask(vault: StillVault, key: string, method: Method, path: string): Promise<Reply> {
  const sent = path.replaceAll(/:\w+/g, '00000000-0000-4000-8000-000000000000')
  return vault.call(method, sent, { key, ...(method !== 'GET' && { body: {} }) })
}

describe('while the store is away', () => {
  test('the error of a request that only reads mentions neither an unknown outcome nor idempotency keys', async () => {
    const seen = new Set<string>()
    for (const only of ['commits', 'everything'] as const) {
      const { vault, fail } = await failingVault(only)
      const permissions = ['token:create', 'token:read', 'token:search', 'token:use']
      const keys = [vault.managementKey, await vault.keyFor({ permissions })]
      fail()
      for (const it of ENDPOINTS) {
        const reads = it.method === 'GET' || READING_POSTS.includes(it.path)
        for (const method of methodsOf(it)) {
          for (const key of keys) {
            const reply = await ask(vault, key, method, it.path)
            if (reply.status !== 503 || method === 'HEAD' || it.permission === 'public') continue
            const { code, detail } = reply.json()
            assert.equal(code, 'store_unavailable', it.path)
            assert.equal(detail, reads ? OF_READS : OF_WRITES, `${method} ${it.path}`)
            seen.add(`${method} ${it.path}`)
          }
        }
      }
    }
    const reading = ['/tokens', '/tokens/:id', '/applications', '/logs', '/callbacks', '/reactors']
    for (const it of reading) assert.ok(seen.has(`GET ${it}`), it)
    for (const it of READING_POSTS) assert.ok(seen.has(`POST ${it}`), it)
    assert.ok(seen.has('POST /tokenize'))
  })

  test('the error of a proxied request says that nothing was sent, which is what the code means there', async () => {
    const { vault, fail } = await failingVault('commits')
    const key = await vault.keyFor({ permissions: ['token:use'] })
    fail()
    const headers = { 'bt-proxy-url': 'https://destination.example/' }
    for (const method of ['GET', 'POST'] as const) {
      const reply = await vault.call(method, '/proxy', { key, headers })
      assert.equal(reply.status, 503, reply.text)
      const { proxy_error: error } = reply.json() as { proxy_error: { detail: string } }
      assert.equal(error.detail, OF_READS)
    }
    assert.deepEqual(vault.world.egress.sent, [])
  })
})

/** Attempts to read or resurrect the secrets in the configuration of a reactor or a proxy through its management. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { SECRET_PLACEHOLDER } from '../../../src/base/secret-value.ts'
import { withCommit } from '../../../src/ports/with-commit.ts'
import { reactorStage } from '../../kit/reactor-stage.ts'
import { threw } from '../../kit/still-runner.ts'
import { stillVault, type Method, type Reply, type StillVault } from '../../kit/still-vault.ts'
import { pathsOf } from '../../kit/token-stage.ts'

const SECRET = 'c4nary-of-the-secret'
const SEALED = { secret: SECRET }

interface SecretHolder {
  readonly path: string
  readonly entity: string
  readonly body: JsonObject
}

const KINDS: readonly SecretHolder[] = [
  {
    path: '/reactors',
    entity: 'reactor',
    body: { name: 'x', code: 'module.exports = () => ({})', configuration: {} },
  },
  {
    path: '/proxies',
    entity: 'proxy',
    body: { name: 'x', destination_url: 'https://api.example.com' },
  },
]

for (const { path, entity, body } of KINDS) {
  describe(`a secret in the configuration under ${path} is shown`, () => {
    test('by no answer: not to its author, in a list, to PUT, to PATCH, nor by a replay of any', async () => {
      const { vault, call } = await stage()
      const headers = { 'bt-idempotency-key': 'again' }
      const answers: string[] = []
      const ask = async (method: Method, at: string, sent?: Json): Promise<Reply> => {
        const reply = await vault.call(method, at, {
          key: vault.managementKey,
          headers: method === 'GET' ? {} : headers,
          ...(sent !== undefined && { body: sent }),
        })
        answers.push(inspect([reply.headers, reply.text]))
        return reply
      }
      const configuration = { KEY: SEALED, OPEN: 'shown' }
      const made = await ask('POST', path, { ...body, configuration })
      assert.equal(made.status, 201, made.text)
      await ask('POST', path, { ...body, configuration })
      const at = `${path}/${made.json()['id'] as string}`
      await ask('GET', at)
      await ask('GET', path)
      for (let round = 0; round < 2; round++) {
        assert.equal((await ask('PUT', at, { ...body, configuration })).status, 200)
        assert.equal((await ask('PATCH', at, { configuration: { KEY: SEALED } })).status, 204)
      }
      await ask('GET', '/logs')
      assert.deepEqual(
        answers.filter((it) => it.includes(SECRET)),
        [],
      )
      assert.deepEqual((await call('GET', at)).json()['configuration'], {
        OPEN: 'shown',
        KEY: SECRET_PLACEHOLDER,
      })
      assert.ok(!inspect([vault.world.logged], { depth: 9 }).includes(SECRET))
      const stored = inspect(vault.world.committed, { depth: 9, maxArrayLength: null })
      assert.ok(!stored.includes(SECRET))
    })

    test('under no other name, reactor or proxy to which the placeholder is moved', async () => {
      const { call, make } = await stage()
      const at = await make({ KEY: SEALED })
      const other = await make({ KEY: 'shown' })
      const moves: [method: Method, at: string, configuration: JsonObject, path: string][] = [
        ['PUT', at, { OTHER: SECRET_PLACEHOLDER }, 'configuration.OTHER'],
        ['PUT', at, { key: SECRET_PLACEHOLDER }, 'configuration.key'],
        ['PUT', at, { KEY: SECRET_PLACEHOLDER, OTHER: SECRET_PLACEHOLDER }, 'configuration.OTHER'],
        ['PATCH', at, { OTHER: SECRET_PLACEHOLDER }, 'configuration.OTHER'],
        ['PATCH', at, { KEY: null, OTHER: SECRET_PLACEHOLDER }, 'configuration.OTHER'],
        ['PUT', other, { KEY: SECRET_PLACEHOLDER }, 'configuration.KEY'],
        ['PATCH', other, { KEY: SECRET_PLACEHOLDER }, 'configuration.KEY'],
        ['POST', path, { KEY: SECRET_PLACEHOLDER }, 'configuration.KEY'],
        ['PUT', at, { KEY: { secret: SECRET_PLACEHOLDER } }, 'configuration.KEY'],
        ['PATCH', at, { KEY: `Bearer ${SECRET_PLACEHOLDER}` }, 'configuration.KEY'],
      ]
      for (const [method, target, configuration, wrong] of moves) {
        const sent = method === 'PATCH' ? { configuration } : { ...body, configuration }
        const reply = await call(method, target, sent)
        const about = `${method} ${JSON.stringify(configuration)}`
        assert.deepEqual([reply.status, pathsOf(reply)], [400, [wrong]], about)
        assert.match(reply.text, /\{\\"secret\\": \\"\.\.\.\\"\}/)
        assert.ok(!reply.text.includes(SECRET), about)
      }
      assert.deepEqual((await call('GET', at)).json()['configuration'], { KEY: SECRET_PLACEHOLDER })
      assert.deepEqual((await call('GET', other)).json()['configuration'], { KEY: 'shown' })
    })

    test('nor after it was removed: the placeholder brings no secret back', async () => {
      const { call, make } = await stage()
      const removals: [method: Method, sent: JsonObject][] = [
        ['PUT', { ...body, configuration: {} }],
        ['PATCH', { configuration: { KEY: null } }],
        ['PATCH', { configuration: { KEY: 'plain' } }],
      ]
      for (const [method, sent] of removals) {
        const at = await make({ KEY: SEALED })
        assert.ok((await call(method, at, sent)).status < 300)
        const again = await call('PATCH', at, { configuration: { KEY: SECRET_PLACEHOLDER } })
        assert.deepEqual([again.status, pathsOf(again)], [400, ['configuration.KEY']])
      }
    })

    test('nor by a request that read it before another one removed or replaced it', async () => {
      for (const [first, wanted] of [
        [{ KEY: null }, 400],
        [{ KEY: { secret: 'c4nary-of-the-next' } }, 204],
      ] as const) {
        let race: (() => Promise<unknown>) | null = null
        const { call, make, open } = await stage(async () => {
          const due = race
          race = null
          await due?.()
        })
        const at = await make({ KEY: SEALED })
        race = async () => await call('PATCH', at, { configuration: first })
        const late = await call('PATCH', at, {
          name: 'y',
          configuration: { KEY: SECRET_PLACEHOLDER },
        })
        assert.equal(late.status, wanted, late.text)
        const now = await open(at)
        assert.ok(!now.includes(SECRET), now)
        assert.equal(now.includes('c4nary-of-the-next'), wanted === 204)
      }
    })

    test('nor to one who patches what it is merged into', async () => {
      const { call, make } = await stage()
      const at = await make({ KEY: SEALED })
      assert.equal(
        (await call('PATCH', at, { configuration: { KEY: { secret: 'next' } } })).status,
        204,
      )
      assert.deepEqual((await call('GET', at)).json()['configuration'], { KEY: SECRET_PLACEHOLDER })
      const reply = await call('PATCH', at, { configuration: { KEY: { more: 'x' } } })
      const shown = (await call('GET', at)).text
      assert.ok(!shown.includes('next'), shown)
      assert.equal(reply.status, entity === 'reactor' ? 204 : 400)
    })
  })

  async function stage(beforeCommit: () => Promise<void> = async () => {}): Promise<Stage> {
    const vault = await stillVault({
      change: (world) => ({
        ...world,
        store: withCommit(world.store, async (tenantId, changes) => {
          if (changes.some((it) => it.kind === 'update' && it.entity === entity))
            await beforeCommit()
          return await world.store.commit(tenantId, changes)
        }),
      }),
    })
    const call: Stage['call'] = (method, at, sent) =>
      vault.call(method, at, {
        key: vault.managementKey,
        ...(sent !== undefined && { body: sent }),
      })
    return {
      vault,
      call,
      make: async (configuration) => {
        const reply = await call('POST', path, { ...body, configuration })
        assert.equal(reply.status, 201, reply.text)
        return `${path}/${reply.json()['id'] as string}`
      },
      open: async (at) => {
        const id = at.split('/')[2]!
        const { terms } = (await vault.world.store
          .rows(entity as 'proxy' | 'reactor')
          .find(vault.tenantId, id))!
        const keys = await vault.world.keyring.open(vault.tenantId)
        const context = { id, part: 'terms', type: entity, containers: [] } as const
        return keys.open(context, terms).reveal()
      },
    }
  }
}

interface Stage {
  readonly vault: StillVault
  readonly call: (method: Method, path: string, body?: Json) => Promise<Reply>
  /** Returns its path. */
  readonly make: (configuration: JsonObject) => Promise<string>
  /** Returns the stored form, decrypted. */
  readonly open: (path: string) => Promise<string>
}

describe('the secret of a reactor', () => {
  test('reaches its code as a string, and is redacted from the errors of the code', async () => {
    const { react, ran, vault } = await reactorStage({
      configuration: { KEY: SEALED, OPEN: { secret: 'x', more: true } },
      behave: () => threw({ name: 'RangeError', message: `no: ${SECRET}` }),
    })
    const reply = await react({ args: null })
    assert.deepEqual(ran().configuration, { KEY: SECRET, OPEN: { secret: 'x', more: true } })
    assert.equal(reply.status, 500)
    assert.match(reply.text, /no: \[redacted\]/)
    assert.ok(!inspect(vault.world.logged, { depth: 9 }).includes(SECRET))
  })

  test('is not made a member of a stored object, which answers would show', async () => {
    const { manage, id } = await reactorStage({ configuration: { KEY: { user: 'a' } } })
    await manage('PATCH', `/reactors/${id}`, { configuration: { KEY: SEALED } })
    const { configuration } = (await manage('GET', `/reactors/${id}`)).json()
    assert.deepEqual(configuration, { KEY: SECRET_PLACEHOLDER })
  })

  test('is read by a key that may replace and run the code: reactor:update with reactor:invoke', async () => {
    const { manage, id, react, ran } = await reactorStage({ configuration: { KEY: SEALED } })
    const code = 'module.exports = async ({ configuration }) => ({ raw: configuration })'
    const configuration = { KEY: SECRET_PLACEHOLDER }
    await manage('PUT', `/reactors/${id}`, { name: 'x', code, configuration })
    await react({ args: null })
    assert.deepEqual(ran().configuration, { KEY: SECRET })
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createApp } from '../../src/app.ts'
import type { JsonObject } from '../../src/base/json.ts'
import { IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_LIFETIME_MS } from '../../src/base/limits.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import type { CallOptions, Method, Reply, StillVaultOptions } from '../kit/still-vault.ts'
import { pathsOf, tokenStage, type TokenStage } from '../kit/token-stage.ts'

/** Calls with an idempotency key. */
async function call(
  { vault, key }: TokenStage,
  idempotencyKey: string,
  path = '/tokens',
  options: CallOptions = {},
  method: Method = 'POST',
): Promise<Reply> {
  const headers = {
    host: 'vault.example',
    'bt-idempotency-key': idempotencyKey,
    ...options.headers,
  }
  return await vault.call(method, path, { key, body: { data: 'x' }, ...options, headers })
}

describe('a request repeated with its BT-IDEMPOTENCY-KEY', () => {
  test('gets the first answer again, status and Location included, and has no second effect', async () => {
    const stage = await tokenStage()
    const first = await call(stage, 'once')
    stage.vault.world.clock.pass(5_000)
    const again = await call(stage, 'once')
    assert.equal(first.status, 201)
    assert.equal(again.status, 201)
    assert.equal(again.text, first.text)
    assert.equal(again.headers['location'], first.headers['location'])
    assert.equal(again.headers['content-type'], first.headers['content-type'])
    assert.equal(stage.stored().length, 1)
  })

  test('gets it even with another body', async () => {
    const stage = await tokenStage()
    const first = await call(stage, 'once', '/tokenize', { body: ['a'] })
    const again = await call(stage, 'once', '/tokenize', { body: { entirely: ['different', 1] } })
    assert.equal(again.text, first.text)
    assert.equal(stage.stored().length, 1)
  })

  test('gets its own trace id', async () => {
    const stage = await tokenStage()
    await call(stage, 'once', '/tokens', { headers: { 'bt-trace-id': 'first' } })
    const again = await call(stage, 'once', '/tokens', { headers: { 'bt-trace-id': 'second' } })
    assert.equal(again.headers['bt-trace-id'], 'second')
  })

  test('gets it whether or not there is a slash at the end, and whatever the query', async () => {
    const stage = await tokenStage()
    const first = await call(stage, 'once')
    assert.equal((await call(stage, 'once', '/tokens/')).text, first.text)
    assert.equal((await call(stage, 'once', '/tokens?a=b')).text, first.text)
  })

  test('gets it however the path is percent-encoded', async () => {
    const stage = await tokenStage()
    const first = await call(stage, 'once')
    assert.equal((await call(stage, 'once', '/%74okens')).text, first.text)
  })

  for (const [over, replayed] of [
    [-1, true],
    [0, false],
    [1, false],
  ] as const) {
    test(`${replayed ? 'gets it' : 'is done anew'} 24 hours and ${over} ms later`, async () => {
      const stage = await tokenStage()
      const first = await call(stage, 'once')
      stage.vault.world.clock.pass(IDEMPOTENCY_LIFETIME_MS + over)
      const again = await call(stage, 'once')
      assert.equal(again.status, 201)
      assert.equal(again.text === first.text, replayed)
      assert.equal(stage.stored().length, replayed ? 1 : 2)
    })
  }

  test('is done anew by another application', async () => {
    const stage = await tokenStage()
    const first = await call(stage, 'once')
    const key = await stage.vault.keyFor({ permissions: ['token:create'] })
    const other = await call(stage, 'once', '/tokens', { key })
    assert.equal(other.status, 201)
    assert.notEqual(other.json()['id'], first.json()['id'])
  })

  test('is done anew with another body by a public key, which is in many hands', async () => {
    const stage = await tokenStage()
    const key = await stage.vault.keyFor({ type: 'public', permissions: ['token:create'] })
    const [mine, theirs] = [{ data: 'mine' }, { data: 'theirs' }]
    const first = await call(stage, 'order-1', '/tokens', { key, body: mine })
    const other = await call(stage, 'order-1', '/tokens', { key, body: theirs })
    const again = await call(stage, 'order-1', '/tokens', { key, body: mine })
    assert.deepEqual([first.status, other.status], [201, 201])
    assert.notEqual(other.json()['id'], first.json()['id'])
    assert.equal(again.text, first.text)
    assert.equal(stage.stored().length, 2)
  })

  test('opens a transaction of its own by a public key, since who knows its id may end it', async () => {
    const stage = await tokenStage()
    const key = await stage.vault.keyFor({ type: 'public', permissions: ['token:create'] })
    const headers = { 'bt-idempotency-key': 'order-1' }
    const open = (by: string): Promise<Reply> =>
      stage.vault.call('POST', '/transactions', { key: by, headers })
    const [first, other] = [await open(key), await open(key)]
    assert.deepEqual([first.status, other.status], [201, 201])
    assert.notEqual(other.json()['id'], first.json()['id'])
    assert.equal((await open(stage.key)).text, (await open(stage.key)).text)
  })

  test('is done anew on another path', async () => {
    const stage = await tokenStage()
    await call(stage, 'once')
    assert.equal((await call(stage, 'once', '/tokenize')).status, 200)
    assert.equal(stage.stored().length, 2)
  })

  test('does not keep a DELETE of the same path from being done', async () => {
    const { vault, applicationId } = await tokenStage()
    const headers = { 'bt-idempotency-key': 'once' }
    const key = vault.managementKey
    const body = { name: 'renamed', permissions: ['token:read'] }
    const path = `/applications/${applicationId}`
    const put = await vault.call('PUT', path, { key, body, headers })
    assert.equal(put.status, 200)
    assert.equal((await vault.call('DELETE', path, { key, headers })).status, 204)
  })

  test('gets the key of an application again that was shown once', async () => {
    const { vault } = await tokenStage()
    const headers = { 'bt-idempotency-key': 'once' }
    const body = { name: 'x', type: 'private', permissions: ['token:create'] }
    const make = (): Promise<Reply> =>
      vault.call('POST', '/applications', { key: vault.managementKey, body, headers })
    const [first, again] = [await make(), await make()]
    assert.equal(again.text, first.text)
    const key = again.json()['key'] as string
    assert.equal((await vault.call('POST', '/tokenize', { key, body: 'x' })).status, 200)
    for (const change of vault.world.committed) {
      if (change.kind !== 'remember-answer') continue
      assert.ok(!Buffer.from(change.answer.body).includes(key), 'it is sealed')
    }
  })

  test('gets it for an answer that had nothing to store', async () => {
    const stage = await tokenStage()
    assert.equal((await call(stage, 'once', '/tokenize', { body: [] })).text, '[]')
    assert.equal((await call(stage, 'once', '/tokenize', { body: ['x'] })).text, '[]')
    assert.deepEqual(stage.stored(), [])
  })

  test('is refused with 403 when the permission was taken away since', async () => {
    const stage = await tokenStage()
    await call(stage, 'once')
    const path = `/applications/${stage.applicationId}`
    const body = { name: 'x', permissions: ['token:read'] }
    await stage.vault.call('PUT', path, { key: stage.vault.managementKey, body })
    assert.equal((await call(stage, 'once')).status, 403)
  })
})

describe('a request that failed is not remembered by its BT-IDEMPOTENCY-KEY:', () => {
  const failures: [status: number, body: JsonObject][] = [
    [400, { type: 'card', data: { number: 'x' } }],
    [403, { data: 'x', containers: ['/forbidden/'] }],
    [409, { data: 'x', id: 'taken' }],
  ]
  for (const [status, body] of failures) {
    test(`${status}`, async () => {
      const rule = { priority: 1, transform: 'mask', permissions: ['token:create'] }
      const stage = await tokenStage({}, { rules: [{ ...rule, container: '/general/' }] })
      await call(stage, 'other', '/tokens', { body: { data: 'x', id: 'taken' } })
      assert.equal((await call(stage, 'once', '/tokens', { body })).status, status)
      const fixed = await call(stage, 'once', '/tokens', { body: { data: 'y', id: 'not-taken' } })
      assert.equal(fixed.status, 201)
      assert.equal(fixed.json()['id'], 'not-taken')
    })
  }

  test('503', async () => {
    let failing = true
    const stage = await tokenStage(
      committing(async (commit) => {
        if (failing) throw new Error('no')
        return await commit()
      }),
    )
    assert.equal((await call(stage, 'once')).status, 503)
    failing = false
    assert.equal((await call(stage, 'once')).status, 201)
  })
})

describe('a request that is repeated while the first is in flight', () => {
  test('is refused with 409; the first is done once, and answered to a client that asks after it', async () => {
    const reached = Promise.withResolvers<void>()
    const hold = Promise.withResolvers<void>()
    const around: Parameters<typeof committing>[0] = async (commit) => {
      reached.resolve()
      await hold.promise
      return await commit()
    }
    const stage = await tokenStage({ ...committing(around), oneServer: 'what is under way' })
    const first = call(stage, 'once')
    await reached.promise
    const second = await call(stage, 'once')
    assert.equal(second.status, 409)
    assert.equal(second.json()['code'], 'idempotency_in_flight')
    hold.resolve()
    const { status, text } = await first
    assert.equal(status, 201)
    assert.equal((await call(stage, 'once')).text, text)
    assert.equal(stage.stored().length, 1)
  })

  test('does not hold up one with another key, application or path', async () => {
    const reached = Promise.withResolvers<void>()
    const hold = Promise.withResolvers<void>()
    let held = false
    const stage = await tokenStage(
      committing(async (commit) => {
        if (!held) {
          held = true
          reached.resolve()
          await hold.promise
        }
        return await commit()
      }),
    )
    const first = call(stage, 'once')
    await reached.promise
    assert.equal((await call(stage, 'twice')).status, 201)
    assert.equal((await call(stage, 'once', '/tokenize')).status, 200)
    hold.resolve()
    assert.equal((await first).status, 201)
  })

  test('in another process is refused with 409 by the store, and nothing is done twice', async () => {
    // The other process commits between our look for its answer and our own commit.
    let race: (() => Promise<Reply>) | null = null
    const stage = await tokenStage({
      change: (world) => {
        const { answers } = world.store
        const find: typeof answers.find = async (...question) => {
          const found = await answers.find(...question)
          const run = race
          race = null
          if (run !== null) await run()
          return found
        }
        return { ...world, store: { ...world.store, answers: { ...answers, find } } }
      },
    })
    const elsewhere = createApp(stage.vault.world, STILL_SETTINGS)
    race = async () => {
      const reply = await elsewhere.inject({
        method: 'POST',
        url: '/tokens',
        headers: {
          'bt-api-key': stage.key,
          'bt-idempotency-key': 'once',
          'content-type': 'application/json',
        },
        payload: '{"data":"x"}',
      })
      assert.equal(reply.statusCode, 201)
      return {
        status: 201,
        headers: {},
        text: reply.payload,
        bytes: reply.rawPayload,
        json: () => ({}),
      }
    }
    assert.equal((await call(stage, 'once')).status, 409)
    const inserts = stage.stored().map((it) => it.id)
    const kept = await stage.vault.world.store.tokens.find(stage.vault.tenantId, inserts)
    assert.equal(kept.length, 1)
    const again = await call(stage, 'once')
    assert.equal(again.status, 201)
    assert.equal(again.json()['id'], kept[0]!.id)
  })
})

describe('BT-IDEMPOTENCY-KEY', () => {
  test('means nothing on GET', async () => {
    const stage = await tokenStage()
    const id = (await call(stage, 'make')).json()['id'] as string
    const get = (key: string): Promise<Reply> =>
      call(stage, 'once', `/tokens/${id}`, { key }, 'GET')
    assert.ok(!('data' in (await get(stage.key)).json()))
    assert.equal((await get(stage.revealKey)).json()['data'], 'x')
    assert.equal((await get(stage.key)).status, 200)
    const remembered = stage.vault.world.committed.filter((it) => it.kind === 'remember-answer')
    assert.equal(remembered.length, 1)
  })

  const accepted: [name: string, key: string][] = [
    ['1 character', 'x'],
    ['400 characters', 'x'.repeat(IDEMPOTENCY_KEY_CHARS_MAX)],
    ['any visible text', '{"a": ~!}'],
  ]
  for (const [name, key] of accepted) {
    test(`may be ${name}`, async () => {
      assert.equal((await call(await tokenStage(), key)).status, 201)
    })
  }

  const refused: [name: string, key: string][] = [
    ['empty', ''],
    ['401 characters', 'x'.repeat(IDEMPOTENCY_KEY_CHARS_MAX + 1)],
    ['beyond ASCII', 'é'],
  ]
  for (const [name, key] of refused) {
    test(`may not be ${name}: 400, and nothing is stored`, async () => {
      const stage = await tokenStage()
      const reply = await call(stage, key)
      assert.equal(reply.status, 400)
      assert.equal(reply.json()['code'], 'header_invalid')
      assert.deepEqual(pathsOf(reply), ['BT-IDEMPOTENCY-KEY'])
      assert.deepEqual(stage.stored(), [])
    })
  }
})

type StageCommit = TokenStage['vault']['world']['store']['commit']

/** A vault in which each commit of tokens goes through `around`. */
function committing(
  around: (commit: () => ReturnType<StageCommit>) => ReturnType<StageCommit>,
): StillVaultOptions {
  return {
    change: (world) => {
      const commit: StageCommit = async (tenantId, changes) => {
        const make = (): ReturnType<StageCommit> => world.store.commit(tenantId, changes)
        return changes.some((it) => it.kind === 'insert-tokens') ? await around(make) : await make()
      }
      return { ...world, store: { ...world.store, commit } }
    },
  }
}

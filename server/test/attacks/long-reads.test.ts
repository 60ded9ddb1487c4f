/** Callers that have the vault read, or make, much of little that they send. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Json } from '../../src/base/json.ts'
import {
  LARGE_BYTES_MIN,
  MiB,
  LARGE_READS_AT_ONCE,
  QUOTA_BYTES_MAX,
  QUOTA_WAIT_MS_MAX,
} from '../../src/base/limits.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'
import type { Reply } from '../kit/still-vault.ts'

let stage: ProxyStage
let key: string
/** Awaited by every read that may return much data. */
let found = async (): Promise<void> => {}
/** How many reads have begun to wait for a turn. */
let waits = 0

/** Ids of more long tokens than one request may read, in a vault that the tests which only read them share. */
const MANY = Array.from({ length: 8 }, (_, n) => `long-${n}`)
let withMany: ProxyStage

async function freshVault(): Promise<void> {
  stage = await newStage()
  key = await stage.vault.keyFor({ rules: [ALL] })
}

async function vaultWithMany(): Promise<void> {
  stage = withMany
  key = await stage.vault.keyFor({ rules: [ALL] })
  if ((await get(MANY.at(-1)!)).status === 200) return
  for (const id of MANY) await make(id, 4.5 * MiB)
}

afterEach(async () => {
  found = async () => {}
  if (stage !== withMany) await stage.close()
})

// Not by the first test that uses it: its store would be closed with that.
before(async () => {
  withMany = await newStage()
})
after(() => withMany.close())

async function newStage(): Promise<ProxyStage> {
  return await proxyStage({
    oneServer: 'a process by itself',
    change: (world) => {
      const { store } = world
      const tokens = Object.create(store.tokens) as typeof store.tokens
      tokens.find = async (...asked) => {
        if ((asked[3] ?? 0) > LARGE_BYTES_MIN) await found()
        return store.tokens.find(...asked)
      }
      const after: Clock['after'] = (ms) => {
        if (ms === QUOTA_WAIT_MS_MAX) waits += 1
        return world.clock.after(ms)
      }
      return {
        ...world,
        clock: { ...world.clock, after },
        store: Object.assign(Object.create(store), { tokens }) as typeof store,
      }
    },
  })
}

const ALL = {
  description: 'all',
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: ['token:create', 'token:read', 'token:search', 'token:use'],
}

/** Resolves when `done()` is true; looks whenever the event loop has been around. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}

/** Resolves when the event loop has been around so often that nothing is left to be done. */
async function quiet(): Promise<void> {
  for (let it = 0; it < 300; it++) await new Promise((resolve) => setImmediate(resolve))
}

/** As many long reads as may be at once, asked for by `ask`; resolves when all of them wait for `gate`. */
async function hold(
  gate: Promise<void>,
  ask: () => Promise<Reply>,
): Promise<readonly Promise<Reply>[]> {
  let reading = 0
  found = () => {
    reading += 1
    return gate
  }
  const held = Array.from({ length: LARGE_READS_AT_ONCE }, ask)
  await until(() => reading === LARGE_READS_AT_ONCE)
  return held
}

async function call(path: string, body: Json): Promise<Reply> {
  const headers = { 'BT-PROXY-URL': stage.destination.url }
  return await stage.vault.call('POST', path, { key, body, headers })
}

async function revoke(revoked: string): Promise<void> {
  const { call: ask, managementKey } = stage.vault
  const own = (await ask('GET', '/applications/key', { key: revoked })).json()
  const path = `/applications/${own['id'] as string}`
  assert.equal((await ask('DELETE', path, { key: managementKey })).status, 204)
}

async function get(id: string): Promise<Reply> {
  return await stage.vault.call('GET', `/tokens/${id}`, { key })
}

/** A token with so much data, which begins with its id; its fingerprint is of that beginning. */
function request(id: string, bytes: number): Record<string, Json> {
  return {
    type: 'token',
    data: id.padEnd(Math.max(bytes, 6), 'x'),
    fingerprint_expression: '{{ data | slice: 0, 6 }}',
    deduplicate_token: true,
  }
}

async function make(id: string, bytes: number): Promise<void> {
  assert.equal((await call('/tokens', { id, ...request(id, bytes) })).status, 201)
}

/** How one asks for tokens by their ids, each once. */
const WAYS: Record<string, (ids: readonly string[]) => Promise<Reply>> = {
  'by their ids': async (ids) => {
    if (ids.length === 1) return await get(ids[0]!)
    return await stage.vault.call('GET', `/tokens?id=${ids.join('&id=')}`, { key })
  },
  'to be detokenized': (ids) => call('/detokenize', ids.map(expression)),
  'to be sent': (ids) => call('/proxy', ids.map(expression)),
  'as duplicates': (ids) =>
    call(
      '/tokenize',
      ids.map((id) => request(id, 10)),
    ),
}

function expression(id: string): string {
  return `{{ ${id} }}`
}

for (const [how, ask] of Object.entries(WAYS)) {
  describe(`long tokens that are asked for ${how}`, () => {
    test('are read for a few callers at a time, and for none together with those before it', async () => {
      await freshVault()
      await make('long', LARGE_BYTES_MIN)
      let under = 0
      let most = 0
      const full = Promise.withResolvers<void>()
      found = async () => {
        most = Math.max(most, ++under)
        if (under === LARGE_READS_AT_ONCE) full.resolve(quiet())
        await full.promise
        under -= 1
      }
      const asked = Array.from({ length: 20 }, () => ask(['long']))
      for (const it of await Promise.all(asked)) assert.equal(it.status, 200)
      assert.equal(most, LARGE_READS_AT_ONCE)
    })

    test('are refused where they are too many, and nothing is kept of that', async () => {
      await vaultWithMany()
      const { status, text } = await ask(MANY)
      assert.equal(status, 400, text.slice(0, 200))
      assert.match(text, /The answer would be too large/)
      assert.equal((await ask(MANY.slice(0, 2))).status, 200)
    })

    test('are read for no caller whose key was revoked while it waited: 401', async () => {
      await freshVault()
      await make('long', LARGE_BYTES_MIN)
      const gate = Promise.withResolvers<void>()
      const held = await hold(gate.promise, () => ask(['long']))
      const before = waits
      key = await stage.vault.keyFor({ rules: [ALL] })
      const late = ask(['long'])
      await until(() => waits > before)
      await revoke(key)
      gate.resolve()
      for (const it of await Promise.all(held)) assert.equal(it.status, 200)
      const { status, text } = await late
      assert.equal(status, 401, text.slice(0, 200))
    })

    test('wait until another read is done, no longer than others do, and short ones do not wait', async () => {
      await freshVault()
      await make('long', LARGE_BYTES_MIN)
      await make('short', 10)
      const gate = Promise.withResolvers<void>()
      const held = await hold(gate.promise, () => ask(['long']))
      assert.equal((await ask(['short'])).status, 200)
      const before = waits
      const late = ask(['long'])
      await until(() => waits > before)
      stage.vault.world.clock.elapse(QUOTA_WAIT_MS_MAX)
      const { status, text } = await late
      assert.equal(status, 503)
      assert.match(text, /tenant_busy/)
      gate.resolve()
      for (const it of await Promise.all(held)) assert.equal(it.status, 200)
      assert.equal((await ask(['long'])).status, 200)
    })
  })
}

describe('what makes much of little', () => {
  const REPEAT = "{{ short | replace: 's', 'ssssssssssssssssssss' "
  const LENGTHENED = `${REPEAT}${"| replace: 's', 'ssssssssssssssssssss' ".repeat(3)}}}`
  const BODIES: Record<string, string[]> = {
    'one token many times': Array(100).fill(expression('middle')),
    'filters that lengthen': [LENGTHENED, 'and', LENGTHENED],
    'one filter that lengthens, once': ["{{ short | pad_left: 100000, 'x' }}"],
  }
  for (const path of ['/detokenize', '/proxy']) {
    for (const [what, body] of Object.entries(BODIES)) {
      test(`waits for a slot: ${what} at ${path}`, async () => {
        await freshVault()
        await make('long', LARGE_BYTES_MIN)
        await make('short', 10)
        await make('middle', 1000)
        const gate = Promise.withResolvers<void>()
        const held = await hold(gate.promise, () => call('/detokenize', [expression('long')]))
        let answered = false
        const late = call(path, body).finally(() => (answered = true))
        for (let it = 0; it < 5; it++) {
          assert.equal((await call(path, [expression('short')])).status, 200)
        }
        assert.equal(answered, false)
        gate.resolve()
        assert.equal((await late).status, 200)
        await Promise.all(held)
      })
    }
  }
})

test('a mask that makes much is shown as it is, and not closed for want of a slot', async () => {
  await freshVault()
  const mask = "{{ data | pad_left: 100000, 'y' }}"
  const made = await call('/tokens', { id: 'masked', type: 'token', data: 'short', mask })
  assert.equal(made.status, 201)
  const masks = { ...ALL, transform: 'mask' }
  const reader = await stage.vault.keyFor({ rules: [masks] })
  const body = [expression('masked')]
  const shown = await stage.vault.call('POST', '/detokenize', { key: reader, body })
  assert.equal(shown.text, JSON.stringify([`${'y'.repeat(99_995)}short`]))
})

test('what was made for destinations that do not answer counts, and others wait for that', async () => {
  await freshVault()
  await make('long', 4 * MiB)
  await make('middle', LARGE_BYTES_MIN)
  await make('short', 10)
  const waiting: Socket[] = []
  const { destination } = stage
  const { answer } = destination
  destination.answer = (_received, socket) => void waiting.push(socket)
  const asked = Array.from({ length: 12 }, () => call('/proxy', [expression('long')]))
  const capacity = QUOTA_BYTES_MAX / (4 * MiB)
  while (waiting.length < capacity) await quiet()
  await quiet()
  assert.ok(waiting.length < capacity + LARGE_READS_AT_ONCE, String(waiting.length))
  for (let it = 0; it < 40; it++) asked.push(call('/detokenize', [expression('middle')]))
  assert.equal((await get('middle')).status, 200, 'whoever sends nothing there does not wait')
  assert.equal((await get('short')).status, 200)
  destination.answer = answer
  assert.equal((await call('/proxy', [expression('short')])).status, 200)
  const { received } = destination
  for (const socket of waiting) answer(received[0]!, socket)
  for (const it of await Promise.all(asked)) assert.equal(it.status, 200)
})

test('ids that are taken cost nothing of what they name', async () => {
  await vaultWithMany()
  const again = MANY.map((id) => ({ type: 'token', id, data: 'x' }))
  const { status, text } = await call('/tokenize', again)
  assert.equal(status, 409)
  assert.match(text, /token_id_taken/)
})

test('a page of more than is shown at once is refused, and a shorter one is not', async () => {
  await vaultWithMany()
  const { vault } = stage
  const lists = ['/tokens?size=SIZE', '/v2/tokens?size=SIZE', '/tokens?type=token&size=SIZE']
  for (const [size, status] of [
    [8, 400],
    [2, 200],
  ]) {
    for (const path of lists) {
      const reply = await vault.call('GET', path.replace('SIZE', String(size)), { key })
      assert.equal(reply.status, status, path)
    }
    const found = await call('/tokens/search', { query: 'type:token', size: size! })
    assert.equal(found.status, status)
  }
})

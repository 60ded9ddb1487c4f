/** Callers that want more of the vault's memory than their tenant's quota. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import {
  ANSWER_PAUSE_MS_MAX,
  BODY_BYTES_MAX,
  LINGER_MS,
  LARGE_BODIES_WAITING_MAX,
  LARGE_BYTES_MIN,
  MiB,
  READS_AT_ONCE,
  QUOTA_BYTES_MAX,
  QUOTA_WAIT_MS_MAX,
} from '../../src/base/limits.ts'
import { answered, proxyStage, type ProxyStage } from '../kit/proxy-stage.ts'

let stage: ProxyStage
let key: string
/** How often a token was looked for. */
let reads = 0
let found = async (): Promise<void> => {}
/** How many tokens and remembered answers are being looked for. */
let finding = 0
/** The vault's ends of all connections. */
let served: Socket[] = []

beforeEach(async () => {
  reads = 0
  found = async () => {}
  stage = await proxyStage({
    oneServer: 'a process by itself',
    change: (world) => {
      const { store } = world
      const tokens = Object.create(store.tokens) as typeof store.tokens
      tokens.find = async (...asked) => {
        // The first attempt at a read is limited to LARGE_BYTES_MIN.
        if (asked[3] !== LARGE_BYTES_MIN) reads += 1
        await found()
        finding += 1
        return await store.tokens.find(...asked).finally(() => (finding -= 1))
      }
      const answers = Object.create(store.answers) as typeof store.answers
      answers.find = async (...asked) => {
        finding += 1
        return await store.answers.find(...asked).finally(() => (finding -= 1))
      }
      const replaced = Object.assign(Object.create(store), { tokens, answers }) as typeof store
      return { ...world, store: replaced }
    },
  })
  key = await stage.vault.keyFor({ rules: [ALL] })
  served = []
  stage.vault.app.server.on('connection', (it: Socket) => served.push(it))
})

afterEach(() => stage.close())

const ALL = {
  description: 'all',
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: ['token:create', 'token:read', 'token:use'],
}

/** Resolves when `done()` is true; looks whenever the event loop has been around. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}

/** Resolves when requests that came later have been answered, and the event loop has been around often after that. */
async function quiet(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await stage.talk('GET /health/live HTTP/1.1\r\nHost: vault.example\r\n\r\n')
    for (let it = 0; it < 100; it++) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Resolves when the vault has read so many bytes from each client and has gone quiet; returns its ends. */
async function read(clients: readonly Socket[], bytes: number): Promise<Socket[]> {
  const endOf = ({ localPort }: Socket) => served.find((it) => it.remotePort === localPort)
  await until(() => clients.every((it) => (endOf(it)?.bytesRead ?? 0) >= bytes))
  await quiet()
  return clients.map((it) => endOf(it)!)
}

async function tokenOf(bytes: number): Promise<string> {
  const body = { type: 'token', data: 'x'.repeat(bytes) }
  const made = await stage.vault.call('POST', '/tokens', { key, body })
  assert.equal(made.status, 201)
  return made.json()['id'] as string
}

function get(id: string): string {
  return `GET /tokens/${id} HTTP/1.1\r\nHost: vault.example\r\nBT-API-KEY: ${key}\r\n\r\n`
}

function post(path: string, bytes = BODY_BYTES_MAX): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: vault.example',
    `BT-API-KEY: ${key}`,
    `BT-PROXY-URL: ${stage.destination.url}`,
    'Content-Type: application/json',
    `Content-Length: ${bytes}\r\n\r\n`,
  ].join('\r\n')
}

/** One of which so much has come that it is counted, and the rest does not. */
function begun(path: string): string {
  return post(path) + ' '.repeat(LARGE_BYTES_MIN)
}

/** More responses of 4 MiB than the system buffers for a client that stops reading: it may buffer tens of MiB. */
const ANSWERS_BUFFERED_MAX = 12

function many(request: string): string {
  return request.repeat(ANSWERS_BUFFERED_MAX)
}

/** How many connections have answers that wait to be taken. */
function waiting(): number {
  return served.filter((it) => it.writableLength > 0).length
}

async function dialMany(count: number): Promise<Socket[]> {
  return await Promise.all(Array.from({ length: count }, () => stage.dial()))
}

/**
 * Has clients that take no answer request as many answers of 4 MiB as their tenant's quota holds, and more, and asserts that no more
 * wait than it holds; returns the clients.
 */
async function fillQuota(request: string): Promise<Socket[]> {
  const capacity = QUOTA_BYTES_MAX / (4 * MiB)
  const deaf = await dialMany(capacity + 4)
  for (const it of deaf) {
    it.pause()
    const before = waiting()
    // One after the other: a busy database may refuse some, and repeats of one key are refused while one is in progress.
    for (let n = 0; n < ANSWERS_BUFFERED_MAX && waiting() === before; n++) {
      it.write(request)
      await quiet()
      await until(() => finding === 0)
      await quiet()
    }
  }
  assert.ok(waiting() >= capacity && waiting() <= capacity + 1, String(waiting()))
  return deaf
}

test('no more answers wait for those who take none than the quota of their tenant allows', async () => {
  const id = await tokenOf(4 * MiB)
  const { call } = stage.vault
  const deaf = await fillQuota(get(id))
  for (const it of deaf) it.destroy()
  assert.equal((await call('GET', `/tokens/${id}`, { key })).status, 200, 'and it is given back')
})

test('of many who come at once few read before it is known how much they find', async () => {
  const id = await tokenOf(LARGE_BYTES_MIN)
  let under = 0
  let most = 0
  const full = Promise.withResolvers<void>()
  found = async () => {
    most = Math.max(most, ++under)
    if (under === READS_AT_ONCE) full.resolve(quiet())
    await full.promise
    under -= 1
  }
  const asked = Array.from({ length: 100 }, () => stage.vault.call('GET', `/tokens/${id}`, { key }))
  for (const it of await Promise.all(asked)) assert.equal(it.status, 200)
  assert.equal(most, READS_AT_ONCE)
})

test('a caller that waits to read is identified again: once its key is revoked, it is refused', async () => {
  const id = await tokenOf(LARGE_BYTES_MIN)
  const gate = Promise.withResolvers<void>()
  let under = 0
  found = () => (under++, gate.promise)
  const { call, managementKey } = stage.vault
  const ask = (its: string) => call('GET', `/tokens/${id}`, { key: its })
  const held = Array.from({ length: READS_AT_ONCE }, () => ask(key))
  await until(() => under === READS_AT_ONCE)
  const body = { name: 'late', type: 'private', permissions: ['token:read'] }
  const late = (await call('POST', '/applications', { key: managementKey, body })).json()
  const waiting = ask(late['key'] as string)
  await quiet()
  const path = `/applications/${late['id'] as string}`
  assert.equal((await call('DELETE', path, { key: managementKey })).status, 204)
  gate.resolve()
  for (const it of await Promise.all(held)) assert.equal(it.status, 200)
  assert.equal((await waiting).status, 401)
})

test('on one connection the next is begun when the answer before it is taken', async () => {
  const id = await tokenOf(4 * MiB)
  const { client, serving } = await stage.dialWithin()
  client.pause().write(many(get(id)))
  await until(() => serving.timeout === ANSWER_PAUSE_MS_MAX / 2)
  // The system has taken the others, from the first byte to the last.
  const taken = (): number =>
    Math.floor((serving.bytesWritten - serving.writableLength) / (4 * MiB))
  await until(() => reads === taken() + 1)
  await quiet()
  assert.ok(reads <= taken() + 1, `${reads} were read, and ${taken()} taken`)
  let bytes = 0
  client.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume()
  await until(() => bytes > 48 * MiB)
  assert.equal(reads, 12)
  client.destroy()
})

test('a client that reads nothing of an answer has its connection closed', async () => {
  const id = await tokenOf(4 * MiB)
  const { client, serving } = await stage.dialWithin()
  client.pause().write(many(get(id)))
  await until(() => serving.timeout === ANSWER_PAUSE_MS_MAX / 2)
  serving.emit('timeout')
  await once(client.resume(), 'close')
})

test('nor does it keep it by what it sends after', async () => {
  const id = await tokenOf(4 * MiB)
  const proxied = post('/proxy', 10)
  for (const behind of [[proxied], [proxied, '{"a', '":'], [proxied, '{"a', '": "bc"}']]) {
    const { client, serving } = await stage.dialWithin()
    client.pause().write(many(get(id)))
    await until(() => serving.timeout === ANSWER_PAUSE_MS_MAX / 2)
    for (const part of behind) {
      client.write(part)
      await quiet()
    }
    assert.equal(serving.timeout, ANSWER_PAUSE_MS_MAX / 2)
    serving.emit('timeout')
    const closed = new Promise((resolve) => client.on('error', () => {}).once('close', resolve))
    client.resume()
    await closed
  }
})

test('nor one whose answer comes behind another', async () => {
  const [id, long] = [await tokenOf(10), await tokenOf(4 * MiB)]
  const { client, serving } = await stage.dialWithin()
  const gate = Promise.withResolvers<void>()
  found = () => gate.promise
  const data = JSON.stringify({ type: 'token', data: 'x'.repeat(4 * MiB) })
  client.pause().write(get(id) + post('/tokens', data.length) + data + many(get(long)))
  await quiet()
  gate.resolve()
  await until(() => serving.timeout === ANSWER_PAUSE_MS_MAX / 2)
  client.destroy()
})

test('an answer that was taken leaves no timeout to the next request', async () => {
  const id = await tokenOf(4 * MiB)
  let asked = false
  stage.destination.answer = () => void (asked = true)
  const { client, serving } = await stage.dialWithin()
  let bytes = 0
  client.on('data', (chunk: Buffer) => (bytes += chunk.length))
  client.write(get(id) + post('/proxy', 2) + '{}')
  await until(() => bytes > 4 * MiB && asked)
  await quiet()
  assert.equal(serving.timeout, 0)
  client.destroy()
})

for (const path of ['/detokenize', '/tokens/search']) {
  test(`a body at ${path} leaves nothing taken when its connection is gone before it has a slot`, async () => {
    const id = await tokenOf(10)
    const gate = Promise.withResolvers<void>()
    const body = JSON.stringify({ a: 'x'.repeat(4 * MiB) })
    for (let it = 0; it < QUOTA_BYTES_MAX / (4 * MiB); it++) {
      found = () => gate.promise
      const client = await stage.dial()
      client.write(get(id) + post(path, body.length) + body)
      await quiet()
      client.resetAndDestroy()
      await quiet()
    }
    gate.resolve()
    found = async () => {}
    await quiet()
    const late = { type: 'token', data: 'x'.repeat(4 * MiB) }
    const answer = await stage.talk(
      post('/tokens', JSON.stringify(late).length) + JSON.stringify(late),
      (it) => it.includes('\r\n\r\n'),
    )
    assert.match(answer, /^HTTP\/1\.1 201 /)
  })
}

test('what is answered again waits as what is read does', async () => {
  const data = { type: 'token', data: 'x'.repeat(4 * MiB) }
  const headers = { 'BT-IDEMPOTENCY-KEY': 'again' }
  const made = await stage.vault.call('POST', '/tokens', { key, body: data, headers })
  assert.equal(made.status, 201)
  const again = post('/tokens', 2).replace('\r\n\r\n', '\r\nBT-IDEMPOTENCY-KEY: again\r\n\r\n{}')
  const deaf = await fillQuota(again)
  for (const it of deaf) it.destroy()
})

for (const path of ['/tokenize', '/proxy']) {
  test(`long bodies wait at ${path} for those before them, and short ones do not`, async () => {
    const whole = JSON.stringify('x'.repeat(BODY_BYTES_MAX - 2))
    const slow = await dialMany(Math.floor(QUOTA_BYTES_MAX / BODY_BYTES_MAX))
    for (const it of slow) it.write(begun(path))
    await read(slow, begun(path).length)
    const late = await stage.dial()
    let answer = ''
    late.on('data', (part: Buffer) => (answer += part.toString('latin1')))
    late.write(post(path) + whole)
    await read([late], LARGE_BYTES_MIN)
    assert.equal(answer, '')
    assert.match(await stage.talk(`${post(path, 3)}"x"`), /^HTTP\/1\.1 200 /)
    slow[0]!.destroy()
    await until(() => answer !== '')
    assert.match(answer, /^HTTP\/1\.1 200 /)
    for (const it of [late, ...slow]) it.destroy()
  })

  test(`a client that leaves while it waits at ${path} is forgotten`, async () => {
    const slow = await dialMany(Math.floor(QUOTA_BYTES_MAX / BODY_BYTES_MAX))
    for (const it of slow) it.write(begun(path))
    await read(slow, begun(path).length)
    const gone = await dialMany(LARGE_BODIES_WAITING_MAX)
    for (const it of gone) it.write(begun(path))
    const ends = await read(gone, begun(path).length)
    assert.match(
      await stage.talk(begun(path), (text) => text.includes('tenant_busy')),
      /^HTTP\/1\.1 503 /,
    )
    for (const it of gone) it.resetAndDestroy()
    await until(() => ends.every((it) => it.destroyed))
    await quiet()
    const late = await stage.dial()
    let answer = ''
    late.on('data', (part: Buffer) => (answer += part.toString('latin1')))
    late.write(begun(path))
    await read([late], begun(path).length)
    assert.equal(answer, '', 'there is a slot again')
    for (const it of [late, ...slow]) it.destroy()
  })

  test(`a client that waits at ${path} for too long gets an error, and no other tenant waits`, async () => {
    const slow = await dialMany(Math.floor(QUOTA_BYTES_MAX / BODY_BYTES_MAX))
    for (const it of slow) it.write(begun(path))
    await read(slow, begun(path).length)
    const late = await stage.dial()
    let answer = ''
    late.on('data', (part: Buffer) => (answer += part.toString('latin1')))
    late.write(post(path) + 'x'.repeat(MiB))
    await read([late], LARGE_BYTES_MIN)
    const { call, addTenant } = stage.vault
    const manager = await addTenant('another')
    const body = { name: 'x', type: 'private', rules: [ALL] }
    const made = await call('POST', '/applications', { key: manager, body })
    const other = made.json()['key'] as string
    const long = { type: 'token', data: 'x'.repeat(4 * MiB) }
    assert.equal((await call('POST', '/tokens', { key: other, body: long })).status, 201)
    stage.vault.world.clock.elapse(QUOTA_WAIT_MS_MAX)
    await until(() => answered(answer))
    assert.match(answer, /^HTTP\/1\.1 503 .*tenant_busy/s)
    assert.match(answer, /^retry-after: \d+\r$/im)
    // A body refused for lack of quota is not read to its end.
    await quiet()
    stage.vault.world.clock.elapse(LINGER_MS)
    for (const it of [late, ...slow]) it.destroy()
  })
}

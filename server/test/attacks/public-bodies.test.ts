/** A public key, which everyone has, that sends bodies as large as only trusted callers may. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { BODY_BYTES_MAX, KiB, PUBLIC_BODY_BYTES_MAX } from '../../src/base/limits.ts'
import { portOf } from '../kit/servers.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'

let vault: StillVault
let publicKey: string
let sockets: Socket[] = []

beforeEach(async () => {
  vault = await stillVault()
  await vault.servers.listen('127.0.0.1')
  publicKey = await vault.keyFor({ type: 'public', permissions: ['token:create'] })
})

afterEach(async () => {
  for (const it of sockets) it.destroy()
  sockets = []
  await vault.close()
})

/** A JSON string of `bytes`. */
function body(bytes: number): string {
  return JSON.stringify('x'.repeat(bytes - 2))
}

/** Sends `bytes` unchanged, and returns the status and code of the response. */
async function send(key: string, headers: readonly string[], bytes: string): Promise<string> {
  const socket = connect(portOf(vault.servers.next()), '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  const lines = ['POST /tokenize HTTP/1.1', 'Host: localhost', `BT-API-KEY: ${key}`, ...headers]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${bytes}`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(answer.toString())!
  return `${status} ${/"code":"(\w+)"/.exec(answer.toString())?.[1] ?? ''}`.trim()
}

async function tokenize(key: string, bytes: number): Promise<string> {
  const sent = { key, rawBody: body(bytes) }
  const reply = await vault.call('POST', '/tokenize', sent)
  return reply.status === 200 ? '200' : `${reply.status} ${reply.json()['code'] as string}`
}

async function allow(bytes: unknown): Promise<string> {
  const settings = { public_body_bytes_max: bytes as string }
  const sent = { key: vault.managementKey, body: { name: 'first', settings } }
  const reply = await vault.call('PUT', '/tenants/self', sent)
  return reply.status === 200 ? '200' : `${reply.status} ${reply.json()['code'] as string}`
}

const REFUSED = '413 public_body_too_large'

test('no body of a public key is parsed that is larger than 256 KiB', async () => {
  const outcomes = []
  for (const bytes of [PUBLIC_BODY_BYTES_MAX + 1, 2 ** 20, BODY_BYTES_MAX]) {
    outcomes.push(await tokenize(publicKey, bytes))
  }
  assert.deepEqual(outcomes, [REFUSED, REFUSED, REFUSED])
  assert.equal(await tokenize(publicKey, PUBLIC_BODY_BYTES_MAX), '200')
  assert.equal(await tokenize(publicKey, PUBLIC_BODY_BYTES_MAX - 1), '200')
})

test('a length that is too large is refused before any of the body has come', async () => {
  const headers = [`Content-Length: ${PUBLIC_BODY_BYTES_MAX + 1}`]
  assert.equal(await send(publicKey, headers, ''), REFUSED)
})

test('a body without a length is refused as soon as it is too large, and not at its end', async () => {
  const headers = ['Transfer-Encoding: chunked', 'Content-Type: application/json']
  const size = PUBLIC_BODY_BYTES_MAX + 1
  const chunk = `${size.toString(16)}\r\n${'1'.repeat(size)}\r\n`
  assert.equal(await send(publicKey, headers, chunk), REFUSED)
})

test('nor one of a session that no private application has authorized: a public key opens them', async () => {
  const opened = await vault.call('POST', '/sessions', { key: publicKey })
  const key = opened.json()['session_key'] as string
  assert.equal(await tokenize(key, BODY_BYTES_MAX), REFUSED)
  assert.equal(await tokenize(key, PUBLIC_BODY_BYTES_MAX + 1), REFUSED)
  assert.equal(await tokenize(key, PUBLIC_BODY_BYTES_MAX), '403 permission_missing')
})

describe('others may send as much as before:', () => {
  test('a private key', async () => {
    const key = await vault.keyFor({ permissions: ['token:create'] })
    assert.equal(await tokenize(key, BODY_BYTES_MAX), '200')
    assert.equal(await tokenize(key, BODY_BYTES_MAX + 1), '413 body_too_large')
  })

  test('an authorized session', async () => {
    const opened = await vault.call('POST', '/sessions', { key: publicKey })
    const { nonce, session_key } = opened.json() as Record<string, string>
    const key = await vault.keyFor({ permissions: ['token:create'] })
    const granted = { nonce: nonce!, permissions: ['token:create'] }
    const authorized = await vault.call('POST', '/sessions/authorize', { key, body: granted })
    assert.equal(authorized.status, 200, authorized.text)
    assert.equal(await tokenize(session_key!, BODY_BYTES_MAX), '200')
  })
})

describe('the setting public_body_bytes_max', () => {
  test('applies from the next request on, up to the limit of all bodies', async () => {
    assert.equal(await tokenize(publicKey, 2 ** 20), REFUSED)
    assert.equal(await allow(String(2 ** 20)), '200')
    assert.equal(await tokenize(publicKey, 2 ** 20), '200')
    assert.equal(await tokenize(publicKey, 2 ** 20 + 1), REFUSED)
    assert.equal(await allow(BODY_BYTES_MAX), '200')
    assert.equal(await tokenize(publicKey, BODY_BYTES_MAX), '200')
    assert.equal(await tokenize(publicKey, BODY_BYTES_MAX + 1), REFUSED)
    assert.equal(await allow(KiB), '200')
    assert.equal(await tokenize(publicKey, KiB), '200')
    assert.equal(await tokenize(publicKey, KiB + 1), REFUSED)
  })

  for (const bytes of [BODY_BYTES_MAX + 1, KiB - 1, 0, -1, 2048.5, '', '1e5', ' 4096', true]) {
    test(`cannot be ${JSON.stringify(bytes)}`, async () => {
      assert.equal(await allow(bytes), '400 body_invalid')
      assert.equal(await tokenize(publicKey, PUBLIC_BODY_BYTES_MAX), '200')
    })
  }
})

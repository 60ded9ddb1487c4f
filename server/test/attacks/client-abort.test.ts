/** Clients that disconnect, send half a request, or send while the vault is stopping. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { startVault, temporaryFolder, type RunningVault } from '../kit/running-vault.ts'

function dial(vault: RunningVault): Socket {
  const { hostname, port } = new URL(vault.url)
  // A reset after the answer is no failure.
  return connect({ host: hostname, port: Number(port) }).on('error', () => {})
}

function post(path: string, key: string, body: string, length = Buffer.byteLength(body)): string {
  const headerSection = [
    `POST ${path} HTTP/1.1`,
    'host: vault',
    `bt-api-key: ${key}`,
    'content-type: application/json',
  ]
  return [...headerSection, `content-length: ${length}`, '', body].join('\r\n')
}

async function answered(vault: RunningVault, key: string, path: string): Promise<number> {
  const reply = await fetch(vault.url + path, { headers: { 'bt-api-key': key } })
  await reply.arrayBuffer()
  return reply.status
}

/** Returns what arrives until the other side closes. */
async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await new Promise((resolve) => socket.on('close', resolve))
  return text
}

async function keysOf(vault: RunningVault): Promise<string> {
  const management = /key_local_mgt_\w+/.exec(vault.greeting)![0]
  const reply = await fetch(`${vault.url}/applications`, {
    method: 'POST',
    headers: { 'bt-api-key': management, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'x',
      type: 'private',
      permissions: ['token:create', 'token:read'],
    }),
  })
  return ((await reply.json()) as { key: string }).key
}

describe('a client cannot end the service', () => {
  test('by aborting in every part of a request, or while it is committed', async (t) => {
    const vault = await startVault(temporaryFolder(t))
    const key = await keysOf(vault)
    const bulk = JSON.stringify(Array.from({ length: 2_000 }, (_, n) => `value ${n}`))
    const whole = post('/tokenize', key, bulk)
    const places = [1, 20, whole.indexOf('\r\n\r\n') + 2, whole.length >> 1, whole.length - 1]
    for (const at of [...places, whole.length, whole.length]) {
      const socket = dial(vault)
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(whole.slice(0, at), resolve))
      socket.resetAndDestroy()
    }
    assert.equal(await answered(vault, key, '/health/ready'), 200)
    assert.equal(await answered(vault, key, '/tokens/none'), 404)
    const { status, err, out } = await vault.stop()
    assert.equal(status, 0, err)
    assert.doesNotMatch(out, /request_failed.*value 1/)
  })

  test('by many requests on one connection, answered in their order', async (t) => {
    const vault = await startVault(temporaryFolder(t))
    const key = await keysOf(vault)
    const socket = dial(vault)
    const requests = Array.from({ length: 50 }, (_, n) => post('/tokenize', key, `{"n${n}":"x"}`))
    socket.write(
      requests.join('') +
        post('/tokenize', key, '{', 1).replace('host', 'connection: close\r\nhost'),
    )
    const text = await readAll(socket)
    const order = [...text.matchAll(/"n(\d+)"/g)].map(([, n]) => Number(n))
    assert.deepEqual(
      order,
      Array.from({ length: 50 }, (_, n) => n),
    )
    assert.match(text, /HTTP\/1.1 400/)
    await vault.stop()
  })
})

test('a request that is half sent when the vault is stopped leaves nothing behind', async (t) => {
  const folder = temporaryFolder(t)
  const first = await startVault(folder)
  const key = await keysOf(first)
  const body = JSON.stringify({ type: 'token', data: 'x', id: 'half sent' })
  const socket = dial(first)
  await new Promise((resolve) => socket.write(post('/tokenize', key, body).slice(0, -5), resolve))
  // This later request is answered, so the earlier bytes have arrived.
  assert.equal(await answered(first, key, '/health/live'), 200)
  const stopped = first.stop()
  socket.destroy()
  assert.equal((await stopped).status, 0)

  const second = await startVault(folder)
  assert.equal(await answered(second, key, '/tokens/half%20sent'), 404)
  await second.stop()
})

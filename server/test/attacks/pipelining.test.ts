/** Strangers that send thousands of requests without a key at once, and read no response. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import { PIPELINED_REQUESTS_MAX } from '../../src/base/limits.ts'
import { portOf } from '../kit/servers.ts'
import { stillVault, type StillVault } from '../kit/still-vault.ts'

const CONNECTIONS = 20
const REQUESTS = 3_000

let vault: StillVault
let clients: Socket[]
/** Requests of all connections so far. */
let begun: number
/** Responses that have not left, by connection, and the most there were on one. */
let inFlight: Map<Socket, number>
let most: number

beforeEach(async () => {
  vault = await stillVault({ oneServer: 'a process by itself' })
  await vault.servers.listen('127.0.0.1')
  clients = []
  begun = most = 0
  inFlight = new Map()
  const count = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    begun += 1
    const now = (inFlight.get(socket) ?? 0) + 1
    inFlight.set(socket, now)
    most = Math.max(most, now)
    response.once('close', () => inFlight.set(socket, inFlight.get(socket)! - 1))
  }
  vault.app.server.prependListener('request', count)
})

afterEach(async () => {
  for (const it of clients) it.destroy()
  await vault.close()
})

async function attack(connections: number, bytes: string): Promise<void> {
  clients = Array.from({ length: connections }, () => {
    const client = connect(portOf(vault.app), '127.0.0.1').pause()
    client.on('error', () => {})
    client.write(bytes)
    return client
  })
  await until(() => inFlight.size === connections)
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}

/** Resolves once no request has begun for a while, in turns of the event loop. */
async function settled(): Promise<void> {
  for (let quiet = 0, before = begun; quiet < 500; quiet += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    if (begun !== before) quiet = 0
    before = begun
  }
}

for (const [name, path, headers] of [
  ['of the OpenAPI document', '/openapi.json', ''],
  ['of paths that do not exist', '/nowhere', ''],
  ['with a key that does not exist', '/tokens', `BT-API-KEY: ${'x'.repeat(40)}\r\n`],
] as const) {
  test(`of thousands of requests ${name}, few are in flight on each connection`, async () => {
    await attack(4, `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`.repeat(REQUESTS))
    await settled()
    assert.ok(most <= PIPELINED_REQUESTS_MAX, `${most} were in flight, ${begun} had begun`)
    assert.equal((await vault.call('GET', '/health/live')).status, 200)
  })
}

test('unread responses keep later requests from beginning', async () => {
  const [all, bytes] = [CONNECTIONS * REQUESTS, await documentBytes()]
  await attack(CONNECTIONS, 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(REQUESTS))
  await settled()
  // The kernel takes some MiB of responses for each connection.
  const taken = Math.ceil((16 * 2 ** 20) / bytes) + PIPELINED_REQUESTS_MAX
  assert.ok(begun <= CONNECTIONS * taken, `${begun} of ${all} had begun`)
  const left = [...inFlight.keys()].map((it) => it.writableLength / bytes)
  assert.ok(Math.max(...left) <= PIPELINED_REQUESTS_MAX, `${Math.max(...left)} documents wait`)
})

async function documentBytes(): Promise<number> {
  return (await vault.call('GET', '/openapi.json')).bytes.length
}

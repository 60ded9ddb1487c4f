/**
 * The control socket, whose commands replace keys and create management keys. A tenant's code and proxied requests must not reach
 * it, even if they know its path.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { senderOf } from '../../src/ports/egress.ts'
import { JailRunner } from '../../src/adapters/jail/jail-runner.ts'
import { giveOrder, takeOrders } from '../../src/adapters/system/control-socket.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import { temporaryFolder } from '../kit/running-vault.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const folder = mkdtempSync(join(tmpdir(), 'symbolon-control-'))
const path = join(folder, 'symbolon.sock')
let connections = 0
const socket = createServer((it) => {
  connections++
  it.destroy()
}).listen(path)
await once(socket, 'listening')

// The most permissive settings.
const allow = ['0.0.0.0/0', '::/0', 'localhost', 'unix'].map((it) => parseDestination(it)!)
const egress = new UndiciEgress({ allow, extraAuthorities: [] })
const runner = await JailRunner.open({
  level: 'jail',
  packages: [],
  checks: false,
  authorities: [],
  wallsTestMsMax: TIMEOUT_MS,
  waysOut: {
    toHost: ({ tenantId }, host, port, signal) => egress.tunnel(tenantId, host, port, null, signal),
    toService: () => Promise.reject(new Error('There is no service')),
  },
})
after(async () => {
  await runner.close()
  await egress.close()
  socket.close()
  rmSync(folder, { recursive: true })
})

const ORDER = '{"recover":{"tenant":"default","applicationId":null},"proofs":[]}'

describe('a reactor that knows the path of the control socket', () => {
  const attempts: [by: string, code: string][] = [
    [
      'http',
      `await new Promise((resolve, reject) => {
        const { request } = require('http')
        request({ socketPath: args.path, method: 'POST' }, resolve).on('error', reject).end(args.order)
      })`,
    ],
    [
      'axios',
      `await require('axios').post('http://localhost/', args.order, { socketPath: args.path })`,
    ],
    [
      'fetch',
      `await fetch('http://unix:' + args.path + ':/', { method: 'POST', body: args.order })`,
    ],
    [
      'net',
      `await new Promise((resolve, reject) => {
        require('net').connect(args.path, resolve).on('error', reject).write(args.order + '\\n')
      })`,
    ],
    ['the file system', `require('fs').writeFileSync(args.path, args.order)`],
  ]
  for (const [by, code] of attempts) {
    test(`does not reach it by ${by}`, async () => {
      const outcome = await runner.run({
        tenantId: 'tenant-a',
        reactorId: by,
        version: '1',
        code: `module.exports = async ({ args }) => { ${code}; return 'reached' }`,
        args: new Sensitive(JSON.stringify({ path, order: ORDER })),
        configuration: new Sensitive('{}'),
        apiKey: null,
        destinations: null,
        timeoutMs: TIMEOUT_MS,
      })
      assert.equal(outcome.kind, 'threw')
      assert.equal(connections, 0)
    })
  }
})

test('the egress gateway treats no URL as the path of a socket', async () => {
  const urls = [
    `unix://${path}`,
    `unix:${path}`,
    `http+unix://${encodeURIComponent(path)}/`,
    `http://unix:${path}:/`,
    `file://${path}`,
  ]
  for (const it of urls) {
    const url = URL.parse(it)
    if (url === null) continue
    await assert.rejects(async () => await egress.vet(senderOf('tenant-a'), url, null), it)
  }
  assert.equal(connections, 0)
})

test('the control socket treats no HTTP request as an order, whatever its body', async (t) => {
  const own = temporaryFolder(t)
  const orders: unknown[] = []
  const listening = await takeOrders(own, async (order) => void orders.push(order))
  t.after(() => listening.close())
  const client = connect(join(own, 'symbolon.sock'))
  client.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${ORDER.length}\r\n\r\n${ORDER}\n`)
  let answer = ''
  for await (const chunk of client) answer += String(chunk)
  assert.match(answer, /^\{"done":false,/)
  assert.deepEqual(orders, [])
  assert.equal(await giveOrder(own, { it: 'listens' }, () => {}), true)
  assert.deepEqual(orders, [{ it: 'listens' }])
})

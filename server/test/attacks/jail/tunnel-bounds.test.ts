/** The bounds of all connections of reactors to hosts, each reached, and the error that code gets then. */
import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { UndiciEgress } from '../../../src/adapters/egress/undici-egress.ts'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { parseDestination } from '../../../src/base/destination.ts'
import {
  EGRESS_FAILED_DIALS,
  EGRESS_TUNNELS_MAX,
  EGRESS_TUNNELS_OF_ONE_MAX,
} from '../../../src/base/limits.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import { testDestination, type TestDestination } from '../../kit/test-destination.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000
/** Of nothing that is given up. */
const SIGNAL = new AbortController().signal

describe('code is refused a connection', () => {
  let destination: TestDestination
  let egress: UndiciEgress
  let runner: JailRunner

  before(async () => {
    destination = await testDestination(() => {})
    egress = new UndiciEgress({ allow: [parseDestination('127.0.0.0/8')!], extraAuthorities: [] })
    runner = await JailRunner.open({
      level: 'jail',
      packages: [],
      authorities: [],
      wallsTestMsMax: TIMEOUT_MS,
      waysOut: {
        toHost: ({ tenantId }, host, port, signal) =>
          egress.tunnel(tenantId, host, port, null, signal),
        toService: () => Promise.reject(new Error('There is no service')),
      },
    })
  })
  after(async () => {
    await runner.close()
    await egress.close()
    await destination.close()
  })

  test('while its tenant has 256, and gets one once another is closed', async () => {
    assert.equal(EGRESS_TUNNELS_OF_ONE_MAX, 256)
    const tunnels = await open('tenant-a', EGRESS_TUNNELS_OF_ONE_MAX)
    assert.equal(
      await connect('tenant-a'),
      "Too many connections: the tenant's reactors have 256 open",
    )
    assert.equal(await connect('tenant-b'), 'connected')
    await close(tunnels.slice(0, 1))
    assert.equal(await connect('tenant-a'), 'connected')
    await close(tunnels)
  })

  test('while all tenants have 1,024, and gets one once another is closed', async () => {
    assert.equal(EGRESS_TUNNELS_MAX, 1_024)
    const owners = EGRESS_TUNNELS_MAX / EGRESS_TUNNELS_OF_ONE_MAX
    const tunnels: Duplex[] = []
    for (let n = 0; n < owners; n++) {
      tunnels.push(...(await open(`owner-${n}`, EGRESS_TUNNELS_OF_ONE_MAX)))
    }
    assert.equal(await connect('tenant-c'), 'Too many connections: reactors have 1024 open in all')
    await close(tunnels.slice(0, 1))
    assert.equal(await connect('tenant-c'), 'connected')
    await close(tunnels)
  })

  test('when 300 of its tenant have failed, to whichever hosts', async () => {
    assert.equal(EGRESS_FAILED_DIALS, 300)
    const port = await closedPort()
    const [failed, message] = (await run(
      'tenant-d',
      // Far more than it may: their number rises with time.
      `for (let n = 0; n < 3000; n++) {
        const host = '127.0.0.' + (2 + n % 200)
        const message = await connected(${port}, host)
        if (/Too many/.test(message)) return [n, message]
      }
      return [3000, 'none']`,
    )) as [number, string]
    assert.equal(message, 'Too many connections failed: try again in a minute')
    assert.ok(failed >= EGRESS_FAILED_DIALS, `${failed} failed`)
    assert.equal(await connect('tenant-e'), 'connected')
  })

  /** Opens as many at once, for the code of a tenant. */
  async function open(owner: string, count: number): Promise<Duplex[]> {
    const dial = () => egress.tunnel(owner, '127.0.0.1', destination.port, null, SIGNAL)
    const tunnels = await Promise.all(Array.from({ length: count }, dial))
    for (const it of tunnels) it.on('error', () => {})
    return tunnels
  }

  async function close(tunnels: readonly Duplex[]): Promise<void> {
    for (const it of tunnels) it.destroy()
    while (tunnels.some((it) => !it.closed)) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Returns `connected`, or the error that code of the tenant gets. */
  async function connect(tenantId: string): Promise<unknown> {
    return await run(tenantId, `return await connected(${destination.port}, '127.0.0.1')`)
  }

  async function run(tenantId: string, body: string): Promise<unknown> {
    const code = `module.exports = async () => {
      const connected = (port, host) => new Promise((resolve) => {
        const it = require('net').connect(port, host)
        it.on('error', ({ message }) => resolve(message))
        it.on('connect', () => it.destroy()).on('close', () => resolve('connected'))
      })
      ${body}
    }`
    const outcome = await runner.run({
      tenantId,
      reactorId: 'reactor',
      version: code,
      code,
      args: new Sensitive('{}'),
      configuration: new Sensitive('{}'),
      apiKey: null,
      destinations: null,
      timeoutMs: TIMEOUT_MS,
    })
    assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
    return outcome.kind === 'returned' ? JSON.parse(String(outcome.result.reveal())) : null
  }
})

/** Returns a port at which nothing listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

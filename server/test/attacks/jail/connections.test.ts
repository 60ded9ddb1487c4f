/** Code that opens and closes connections by every means it has: it must not take the service's descriptors, nor flood a host. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { duplexPair } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { UndiciEgress } from '../../../src/adapters/egress/undici-egress.ts'
import { CONNECTIONS_MAX } from '../../../src/adapters/jail/guest/frames.ts'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { parseDestination } from '../../../src/base/destination.ts'
import { EGRESS_FAILED_DIALS_OF_HOST } from '../../../src/base/limits.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import type { ReactorOutcome } from '../../../src/ports/reactor-runner.ts'
import { nextOutput } from '../../kit/output-of.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000
const ATTEMPTS = 500

/** Opens a connection and closes it, without waiting for either; the last by frames of its own. */
const MEANS: Readonly<Record<string, string>> = {
  net: `const it = require('net').connect(args.port, '127.0.0.1'); it.on('error', () => {}); it.destroy()`,
  tls: `const it = require('tls').connect(args.port, '127.0.0.1'); it.on('error', () => {}); it.destroy()`,
  http: `const it = require('http').get({ host: '127.0.0.1', port: args.port }); it.on('error', () => {}).on('socket', (it) => it.destroy())`,
  https: `const it = require('https').get({ host: '127.0.0.1', port: args.port }); it.on('error', () => {}).on('socket', (it) => it.destroy())`,
  fetch: `const it = new AbortController(); fetch('http://127.0.0.1:' + args.port, it).catch(() => {}); it.abort()`,
  frames: `const target = Buffer.from(JSON.stringify({ host: '127.0.0.1', port: args.port }))
    const frame = (kind, content) => {
      const it = Buffer.alloc(9 + content.length)
      it.writeUInt32BE(4 + content.length)
      it[4] = kind
      it.writeUInt32BE(1e6 + n, 5)
      content.copy(it, 9)
      return it
    }
    pipe.write(Buffer.concat([frame(68, target), frame(67, Buffer.alloc(0))]))`,
}

describe('code that opens and closes connections', () => {
  /** A server that never accepts: connections to it stay half open. */
  let port = 0
  let stopped: ReturnType<typeof spawn>
  let egress: UndiciEgress
  let runner: JailRunner
  let most = 0
  let dialled = 0
  /** Connections to the service, now and at most. */
  const toService = { open: 0, most: 0 }

  before(async () => {
    const listen = `const it = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      console.log(it.address().port) })`
    const listener = spawn(process.execPath, ['-e', listen], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    stopped = listener
    port = Number(String(await nextOutput(listener)))
    stopped.kill('SIGSTOP')
    const allow = ['127.0.0.1'].map((it) => parseDestination(it)!)
    egress = new UndiciEgress({ allow, extraAuthorities: [] })
    runner = await JailRunner.open({
      level: 'jail',
      packages: [],
      authorities: [],
      wallsTestMsMax: TIMEOUT_MS,
      waysOut: {
        toHost: async ({ tenantId }, host, port, signal) => {
          dialled++
          most = Math.max(most, descriptors())
          return await egress.tunnel(tenantId, host, port, null, signal)
        },
        toService: async () => {
          const [connection, service] = duplexPair()
          toService.most = Math.max(toService.most, ++toService.open)
          service.resume()
          return connection.once('close', () => toService.open--)
        },
      },
    })
  })
  after(async () => {
    await runner.close()
    await egress.close()
    stopped.kill('SIGKILL')
  })

  for (const [means, code] of Object.entries(MEANS)) {
    test(`by ${means} has no more than its share, and cannot go on dialling`, async (t) => {
      const tenant = `tenant-${means}`
      await run(tenant, 'module.exports = () => 1')
      most = 0
      dialled = 0
      const first = descriptors()
      const outcome = await run(
        tenant,
        `module.exports = async ({ args }) => {
          const pipe = process._getActiveHandles().find((it) => it._handle?.fd === 3)
          for (let n = 0; n < ${ATTEMPTS}; n++) {
            ${code}
            if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
          }
          return 'done'
        }`,
      )
      // Frames of its own do not wait for a free slot: they may cost it its process.
      const ended = means === 'frames' && outcome.kind === 'died'
      assert.ok(ended || outcome.kind === 'returned', JSON.stringify(outcome))
      assert.ok(dialled > 0, 'it opened none')
      t.diagnostic(`${dialled} dialled, ${most - first} descriptors`)
      // The guest that runs and the two that are started in its place have a few each.
      assert.ok(most - first < CONNECTIONS_MAX + 30, `${most - first} descriptors more`)
      await untilClosed(first)
      // A process may have ended before it dialled so often.
      if (dialled <= EGRESS_FAILED_DIALS_OF_HOST) return
      const again = await run(
        tenant,
        // Some may be dialled by now: the limit rises with time, and it took as long as the machine is slow.
        `module.exports = async ({ args }) => {
          const dial = () => new Promise((resolve) => require('net').connect(args.port, '127.0.0.1')
            .on('error', ({ message }) => resolve(message)))
          let messages
          for (let n = 0; n < ${ATTEMPTS} && !/to this host failed/.test(messages); n++) {
            messages = await Promise.race(Array.from({ length: ${CONNECTIONS_MAX} }, dial))
          }
          return messages
        }`,
      )
      const said = again.kind === 'returned' ? String(again.result.reveal()) : again.kind
      assert.match(said, /Too many connections to this host failed/)
    })
  }

  test('by the client for the service has no more than its share', async () => {
    const outcome = await run(
      'tenant-bt',
      `module.exports = async ({ bt }) => {
        for (let n = 0; n < ${ATTEMPTS}; n++) {
          bt.tokenize({ a: n }).catch(() => {})
          if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
        }
      }`,
      'key_test',
    )
    assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
    while (toService.open > 0) await new Promise((resolve) => void setImmediate(resolve))
    assert.ok(toService.most > 1 && toService.most <= CONNECTIONS_MAX, `${toService.most} at once`)
  })

  async function run(tenantId: string, code: string, key?: string): Promise<ReactorOutcome> {
    return await runner.run({
      tenantId,
      reactorId: code,
      version: '1',
      code,
      args: new Sensitive(JSON.stringify({ port })),
      configuration: new Sensitive('{}'),
      apiKey: key === undefined ? null : new Sensitive(key),
      destinations: null,
      timeoutMs: TIMEOUT_MS,
    })
  }
})

function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}

/** Waits until the sockets of a run are closed. */
async function untilClosed(first: number): Promise<void> {
  while (descriptors() > first + 30) await new Promise((resolve) => void setImmediate(resolve))
}

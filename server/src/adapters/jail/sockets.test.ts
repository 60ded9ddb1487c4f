import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, describe, test } from 'node:test'
import { onRequest, testAuthority, testDestination } from '../../../test/kit/test-destination.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { EgressRefusal } from '../../ports/egress.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'
import { CONNECTIONS_MAX } from './guest/frames.ts'
import { JailRunner } from './jail-runner.ts'

/** The connections requested, in order. */
const asked: string[] = []

const echo = onRequest((socket, headerSection, body) => {
  const [line = ''] = headerSection.split('\r\n')
  if (line.includes(' /short ')) {
    socket.end('short')
    return
  }
  if (line.includes(' /ended ')) {
    socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${'a'.repeat(LONG)}`)
    return
  }
  const said = JSON.stringify({ line, length: body.length, long: 'a'.repeat(LONG) })
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${said.length}\r\n\r\n${said}`)
})
/** More than one window, so that credit must be granted on the way. */
const LONG = 300_000

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const plain = await testDestination(echo)
const secure = await testDestination(echo, { certificate: 'destination' })
const runner = await JailRunner.open({
  level: 'jail',
  packages: [],
  checks: false,
  authorities: [testAuthority()],
  wallsTestMsMax: TIMEOUT_MS,
  waysOut: {
    toHost: async ({ tenantId }, host, port) => {
      asked.push(`${tenantId} ${host} ${port}`)
      if (host === 'forbidden.test') throw new EgressRefusal('address')
      return await to(port === 443 ? secure.port : plain.port)
    },
    toService: async () => {
      asked.push('service')
      return await to(plain.port)
    },
  },
})
after(() => Promise.all([runner.close(), plain.close(), secure.close()]))

describe('a guest', () => {
  const whole = { line: 'POST /path HTTP/1.1', length: LONG, long: LONG }
  const clients: [what: string, code: string][] = [
    [
      'fetch',
      `const answer = await fetch(args.url, { method: 'POST', body }); return tell(await answer.json())`,
    ],
    ['axios', `return tell((await require('axios').post(args.url, body)).data)`],
    [
      'node-fetch',
      `const answer = await require('node-fetch')(args.url, { method: 'POST', body }); return tell(await answer.json())`,
    ],
    [
      'https or http',
      `return await new Promise((resolve, reject) => {
        const { request } = require(args.url.split(':')[0])
        const options = { method: 'POST', headers: { 'content-length': body.length } }
        request(args.url, options, async (answer) => {
          let text = ''
          for await (const it of answer) text += it
          resolve(tell(JSON.parse(text)))
        }).on('error', reject).end(body)
      })`,
    ],
  ]
  for (const [what, code] of clients) {
    for (const scheme of ['https', 'http']) {
      test(`sends and gets as much as it likes by ${what}, over ${scheme}`, async () => {
        const outcome = await run(
          `const body = 'b'.repeat(${LONG}); const tell = (it) => ({ ...it, long: it.long.length }); ${code}`,
          { url: `${scheme}://destination.test/path` },
        )
        assert.deepEqual(resultOf(outcome), whole)
        const port = scheme === 'https' ? 443 : 80
        assert.equal(asked.at(-1), `tenant-a destination.test ${port}`)
      })
    }
  }

  for (const scheme of ['https', 'http']) {
    test(`gets all that came before the destination closed the connection, however slowly it reads, over ${scheme}`, async () => {
      const outcome = await run(
        `const answer = await new Promise((resolve, reject) =>
          require('${scheme}').get('${scheme}://destination.test/ended', resolve).on('error', reject))
        let length = 0
        for await (const it of answer) {
          length += it.length
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
        return length`,
      )
      assert.equal(resultOf(outcome), LONG)
    })
  }

  test('has no connection of an earlier run, even if the destination closed it and something was left unread', async () => {
    const code = `kept ??= null
      const before = kept === null ? null : kept.destroyed
      kept = require('net').connect(80, 'destination.test')
      kept.write('GET /short HTTP/1.1\\r\\n\\r\\n')
      while (!kept._readableState.ended) await new Promise((resolve) => setImmediate(resolve))
      return before`
    const again = { reactorId: 'reactor-again', before: 'let kept;' }
    assert.equal(resultOf(await run(code, {}, undefined, again)), null)
    assert.equal(resultOf(await run(code, {}, undefined, again)), true)
  })

  test('cannot write to a connection that was closed', async () => {
    const outcome = await run(
      `const socket = require('net').connect({ host: 'destination.test', port: 80, allowHalfOpen: true })
      socket.write('GET /ended HTTP/1.1\\r\\n\\r\\n')
      for await (const it of socket) {}
      return await new Promise((resolve) => {
        let reason = null
        socket.on('error', ({ message }) => resolve((reason = message)))
        const write = () => { socket.write('a'); if (reason === null) setImmediate(write) }
        write()
      })`,
    )
    assert.match(String(resultOf(outcome)), /closed|destroyed/)
  })

  test('learns why a destination is refused, and nothing else', async () => {
    const outcome = await run(
      `return await fetch('https://forbidden.test').catch((error) => error.cause.message)`,
    )
    assert.equal(resultOf(outcome), 'Refused by the rule on address')
  })

  test('trusts no certificate for another name', async () => {
    const outcome = await run(
      `return await fetch('https://other.test').catch((error) => error.cause.code)`,
    )
    assert.equal(resultOf(outcome), 'ERR_TLS_CERT_ALTNAME_INVALID')
  })

  test('speaks to the service by the public client, which it gets with a key only', async () => {
    const code = `return (await req.bt.tokenize({ a: 1 })).line`
    assert.equal(resultOf(await run(code, {}, 'key_test')), 'POST /tokenize/ HTTP/1.1')
    assert.equal(asked.at(-1), 'service')
    assert.equal(resultOf(await run('return req.bt')), null)
  })

  test('opens no more connections than it may have at once, and the others after them', async () => {
    asked.length = 0
    const outcome = await run(
      `const all = Array.from({ length: 50 }, (_, n) => n)
      const tell = async (n) => (await (await fetch('http://destination.test/' + n)).json()).line
      return await Promise.all(all.map(tell))`,
    )
    const lines = Array.from({ length: 50 }, (_, n) => `GET /${n} HTTP/1.1`)
    assert.deepEqual(resultOf(outcome), lines)
  })

  test('leaves no connection open when its run is over', async () => {
    await run(`await fetch('https://destination.test/'); return 1`)
    while (secure.open() > 0) await new Promise((resolve) => void setImmediate(resolve))
  })

  const forged: [what: string, frames: string][] = [
    ['more bytes than the window allows', 'open, frame(64, Buffer.alloc(70000))'],
    ['more credit than the window has', 'open, frame(65, Buffer.from([0, 1, 0, 0]))'],
    ['one connection twice', 'open, open'],
    [
      'more connections than it may have',
      `...Array.from({ length: ${CONNECTIONS_MAX + 1} }, (_, n) => {
        const numbered = Buffer.from(open)
        numbered.writeUInt32BE(n, 5)
        return numbered
      })`,
    ],
    ['bytes after the last', 'open, frame(66), frame(64, Buffer.from("a"))'],
    ['a destination that is none', 'frame(68, Buffer.from("[]"))'],
    ['a destination that is no JSON', 'frame(68, Buffer.from("{"))'],
    ['a long one', 'frame(68, Buffer.alloc(2000))'],
    ['what only the host says', 'frame(69)'],
  ]
  for (const [what, frames] of forged) {
    test(`dies of saying ${what}`, async () => {
      const outcome = await run(
        `const frame = (kind, content = Buffer.alloc(0)) => {
          const head = Buffer.alloc(9)
          head.writeUInt32BE(4 + content.length)
          head.writeUInt8(kind, 4)
          return Buffer.concat([head, content])
        }
        const open = frame(68, Buffer.from('{"host":"destination.test","port":443}'))
        require('fs').writeSync(3, Buffer.concat([${frames}]))
        await new Promise(() => {})`,
      )
      assert.deepEqual(outcome, { kind: 'died' })
    })
  }
})

let runs = 0

async function run(
  body: string,
  args: object = {},
  key?: string,
  { reactorId = `reactor-${++runs}`, before = '' } = {},
): Promise<ReactorOutcome> {
  return await runner.run({
    tenantId: 'tenant-a',
    reactorId,
    version: '1',
    code: `${before} module.exports = async (req) => { const { args } = req; ${body} }`,
    args: new Sensitive(JSON.stringify(args)),
    configuration: new Sensitive('{}'),
    apiKey: key === undefined ? null : new Sensitive(key),
    destinations: null,
    timeoutMs: TIMEOUT_MS,
  })
}

function resultOf(outcome: ReactorOutcome): unknown {
  assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
  return outcome.kind === 'returned' ? JSON.parse(String(outcome.result.reveal())) : null
}

async function to(port: number): Promise<Duplex> {
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const socket = connect(port, '127.0.0.1', () => resolve(socket)).on('error', reject)
  return await promise
}

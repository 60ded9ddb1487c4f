/** Tests that well-behaved code keeps its process, whatever client it uses. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { noBubblewrap } from '../../../test/kit/bubblewrap.ts'
import { onRequest, testAuthority, testDestination } from '../../../test/kit/test-destination.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { REACTOR_LEVELS } from '../../ports/reactor-runner.ts'
import { JailRunner } from './jail-runner.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const answer = onRequest((socket) => {
  const said = JSON.stringify({ id: 'x', type: 'token', data: 'x' })
  const type = 'Content-Type: application/json'
  socket.write(`HTTP/1.1 200 OK\r\n${type}\r\nContent-Length: ${said.length}\r\n\r\n${said}`)
})
const plain = await testDestination(answer)
const secure = await testDestination(answer, { certificate: 'destination' })
after(() => Promise.all([plain.close(), secure.close()]))

const HTTPS = `'https://destination.test/'`

const WORK: Readonly<Record<string, string>> = {
  fetch: `await (await fetch(${HTTPS}, { method: 'POST', body: 'b' })).json()`,
  'fetch, without reading the body': `await fetch(${HTTPS})`,
  'fetch with a timeout': `await (await fetch(${HTTPS}, { signal: AbortSignal.timeout(60_000) })).text()`,
  'several at once': `await Promise.all([1, 2, 3].map(async () => (await fetch(${HTTPS})).json()))`,
  axios: `await require('axios').post(${HTTPS}, 'b', { timeout: 60_000 })`,
  'axios, loaded and configured at the top': `await client.get('/')`,
  https: `await new Promise((resolve, reject) => {
    require('https').get(${HTTPS}, { timeout: 60_000 }, (it) => it.resume().on('end', resolve)).on('error', reject)
  })`,
  'an agent of its own': `await new Promise((resolve, reject) => {
    const https = require('https')
    const agent = new https.Agent({ keepAlive: true })
    https.get(${HTTPS}, { agent }, (it) => it.resume().on('end', resolve)).on('error', reject)
  })`,
  'node-fetch': `await (await require('node-fetch')(${HTTPS})).json()`,
  'undici, which the operator added': `await (await require('undici').request(${HTTPS})).body.json()`,
  bt: `await bt.tokens.retrieve('x')`,
  timers: `await new Promise((resolve) => setTimeout(resolve, 1))`,
  crypto: `await require('util').promisify(require('crypto').scrypt)('a', 'b', 16)`,
  'web crypto': `await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt'])`,
  zlib: `await require('util').promisify(require('zlib').gzip)('a')`,
  streams: `await require('stream/consumers').text(require('stream').Readable.from(['a', 'b']))`,
  'web streams': `for await (const _ of new Response('a').body.pipeThrough(new TextDecoderStream()));`,
  'pdf-lib': `const { PDFDocument } = require('pdf-lib'); await (await PDFDocument.create()).save()`,
  'node-forge': `require('node-forge').random.getBytesSync(4)`,
  'node-forge, with a digest': `require('node-forge').md.sha256.create().update('a').digest().toHex()`,
  'crypto-js': `const { AES, PBKDF2, SHA256 } = require('crypto-js')
    AES.decrypt(AES.encrypt(SHA256('a').toString(), 'b').toString(), 'b'); PBKDF2('a', 'b', { iterations: 1 }).toString()`,
  xmlbuilder2: `require('xmlbuilder2').create({ a: 1 }).end()`,
  'json-stable-stringify': `require('json-stable-stringify')({ b: 1, a: 2 })`,
  uuid: `require('uuid').v4()`,
  'a memoized function': `require('lodash').memoize((it) => it)('a')`,
  'segments of text': `[...new Intl.Segmenter().segment('a b')]`,
  'a lock': `await navigator.locks.request('a', () => {})`,
  lodash: `require('lodash').template('<%= a %>')({ a: require('lodash').uniqueId() })`,
  'a context': `await new (require('async_hooks').AsyncLocalStorage)().run(1, async () => null)`,
  errors: `try { JSON.parse('{') } catch (error) { console.error(error.stack) }`,
}

/** Of the clients, one for each way to the host. The other levels differ only in how the walls are made. */
const AT_EVERY_LEVEL = [
  'fetch',
  'axios',
  'https',
  'undici, which the operator added',
  'bt',
  'crypto',
]

/**
 * Pieces of work that share a reactor, and so a process, which takes longer to start than they run. Neighbours above often
 * use the same package, so they are in different ones: each package is loaded by its first run in a process.
 */
const SHARED_REACTORS = 4
const REACTORS = Array.from({ length: SHARED_REACTORS }, (_, n) =>
  Object.entries(WORK).filter((_, at) => at % SHARED_REACTORS === n),
)

for (const level of REACTOR_LEVELS) {
  const skip = level === 'hardened' && noBubblewrap()
  const title = `a reactor at the level ${level} keeps its process over its runs with`
  describe(title, { skip }, () => {
    let runner: JailRunner
    /** What was left, by reactor. */
    const left = new Map<string, string>()
    before(async () => {
      const to = (port: number): Promise<Duplex> =>
        new Promise((resolve, reject) => {
          const socket = connect(port, '127.0.0.1', () => resolve(socket)).once('error', reject)
        })
      runner = await JailRunner.open({
        level,
        packages: ['undici'],
        authorities: [testAuthority()],
        output: () => {},
        over: (run, it) => void left.set(run.reactorId, it),
        overMsMax: TIMEOUT_MS,
        wallsTestMsMax: TIMEOUT_MS,
        waysOut: { toHost: () => to(secure.port), toService: () => to(plain.port) },
      })
    })
    after(() => runner.close())

    for (const [n, works] of REACTORS.entries()) {
      const cases = works.map(([what, work]) => `case ${JSON.stringify(what)}: { ${work}; break }`)
      const code = `let runs = 0
        const client = ${cases.join().includes('client.') ? `require('axios').create({ baseURL: ${HTTPS} })` : 'null'}
        module.exports = async ({ args, bt }) => { switch (args.what) { ${cases.join('\n')} }; return ++runs }`
      for (const [what] of works) {
        if (level !== 'jail' && !AT_EVERY_LEVEL.includes(what)) continue
        test(what, async () => {
          const run = {
            tenantId: 'tenant',
            reactorId: `reactor-${n}`,
            version: '1',
            code,
            args: new Sensitive(JSON.stringify({ what })),
            configuration: new Sensitive('{}'),
            apiKey: new Sensitive('key_lent'),
            destinations: null,
            timeoutMs: TIMEOUT_MS,
          }
          let earlier: number | null = null
          for (let times = 0; times < 3; times++) {
            const outcome = await runner.run(run)
            assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
            if (outcome.kind !== 'returned') return
            const count = Number(String(outcome.result.reveal()))
            if (earlier !== null) assert.equal(count, earlier + 1, left.get(run.reactorId))
            earlier = count
          }
        })
      }
    }
  })
}

/**
 * Reactors of the kinds that people write for the hosted product run here unchanged: by the whole service, with a real
 * jail and a destination over TLS, at each level that has walls.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { REACTOR_TIMEOUT_ASKED_MS_MAX } from '../../src/base/limits.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'
import { startService, type RunningService } from '../kit/running-service.ts'
import { AUTHORITY_FILE, onRequest, testDestination } from '../kit/test-destination.ts'
import { CARD, SAMPLES, type Expected } from './samples.ts'

/** Says what it was sent; knows no /missing, and never answers to /slow. */
const destination = await testDestination(
  onRequest((socket, headerSection, body) => {
    const [line = '', ...lines] = headerSection.split('\r\n')
    const [method, path] = line.split(' ')
    if (path === '/slow') return
    const header = (name: string): string | undefined =>
      lines.find((it) => it.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2)
    const [authorization, signature] = [header('authorization'), header('x-signature')]
    const said = JSON.stringify({ method, path, body: body.toString(), authorization, signature })
    const status = path === '/missing' ? '404 Not Found' : '200 OK'
    const type = 'Content-Type: application/json'
    socket.write(`HTTP/1.1 ${status}\r\n${type}\r\nContent-Length: ${said.length}\r\n\r\n${said}`)
  }),
  { certificate: 'destination' },
)
after(() => destination.close())

test('every sample is in the table', () => {
  const files = readdirSync(new URL('.', import.meta.url)).filter((it) => it.endsWith('.js'))
  assert.deepEqual(SAMPLES.map((it) => `${it.file}.js`).toSorted(), files.toSorted())
})

for (const level of ['jail', 'hardened'] as const) {
  const skip = level === 'hardened' && noBubblewrap()
  describe(`the service at the level ${level} runs unchanged`, { skip }, () => {
    let service: RunningService
    let [caller, cardId] = ['', '']

    before(async () => {
      service = await startService({
        SYMBOLON_REACTOR_LEVEL: level,
        SYMBOLON_EGRESS_ALLOW: `localhost:${destination.port}`,
        SYMBOLON_EXTRA_CA_FILE: AUTHORITY_FILE,
      })
      caller = (await application({ permissions: ['token:create', 'token:use'] }))['key'] as string
      const made = await call('/tokens', caller, { type: 'card', data: CARD })
      cardId = made.json['id'] as string
    })
    after(() => service.stop())

    for (const sample of SAMPLES) {
      const { file, acting, status = 200, headers = {}, answer } = sample
      test(file, async () => {
        const url = `https://localhost:${destination.port}`
        const actor = acting && { application: { id: (await application(acting))['id']! } }
        const reactor = await call('/reactors', service.managementKey, {
          name: file,
          code: readFileSync(new URL(`${file}.js`, import.meta.url), 'utf8'),
          configuration: { ...sample.configuration, API_URL: url },
          ...actor,
        })
        assert.equal(reactor.status, 201, JSON.stringify(reactor.json))
        const args: Json = JSON.parse(JSON.stringify(sample.args).replaceAll('CARD', cardId))
        const path = `/reactors/${reactor.json['id'] as string}/react`
        // As much time as there is, so that a slow machine has enough to load what the code loads.
        const timeout = { timeout_ms: REACTOR_TIMEOUT_ASKED_MS_MAX }
        const reply = await call(path, caller, { args, ...timeout })
        assertAlike(reply.json, answer)
        assert.equal(reply.status, status)
        for (const [name, value] of Object.entries(headers)) {
          assert.equal(reply.headers.get(name), value)
        }
      })
    }

    async function application(rights: JsonObject): Promise<JsonObject> {
      const body = { name: 'x', type: 'private', ...rights }
      return (await call('/applications', service.managementKey, body)).json
    }

    async function call(
      path: string,
      key: string,
      body: Json,
    ): Promise<{ status: number; headers: Headers; json: JsonObject }> {
      const reply = await fetch(`${service.url}${path}`, {
        method: 'POST',
        headers: { 'bt-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return {
        status: reply.status,
        headers: reply.headers,
        json: (await reply.json()) as JsonObject,
      }
    }
  })
}

/** No member more, but in `tokens`: how tokens are rendered has tests of its own. */
function assertAlike(actual: Json | undefined, expected: Expected, path = '$'): void {
  if (expected instanceof RegExp) assert.match(actual as string, expected, path)
  else if (typeof expected !== 'object' || expected === null)
    assert.deepEqual(actual, expected, path)
  else {
    assert.ok(typeof actual === 'object' && actual !== null, `${path}: ${JSON.stringify(actual)}`)
    if (path !== '$.tokens') {
      assert.deepEqual(
        Object.keys(actual).toSorted(),
        Object.keys(expected).toSorted(),
        `${path}: ${JSON.stringify(actual)}`,
      )
    }
    for (const [name, it] of Object.entries(expected)) {
      assertAlike((actual as JsonObject)[name], it, `${path}.${name}`)
    }
  }
}

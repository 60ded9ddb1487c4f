/** What code would do to users of the service's host with the headers of its responses. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { callbackStage } from '../../kit/callback-stage.ts'
import { reactorStage, type ReactorStageOptions } from '../../kit/reactor-stage.ts'
import { threw } from '../../kit/still-runner.ts'
import type { Reply } from '../../kit/still-vault.ts'

const PUBLIC = 'https://vault.example'

async function afterThrowing(
  headers: JsonObject,
  options: ReactorStageOptions = {},
): Promise<Reply> {
  const error = { name: 'CustomHttpResponseError', status: 302, headers, body: 'x' }
  const { react } = await reactorStage({ ...options, behave: () => threw(error) })
  const reply = await react({ args: null })
  assert.equal(reply.status, 302, reply.text)
  return reply
}

describe('code cannot send users elsewhere or act for the whole host by', () => {
  const elsewhere: readonly Json[] = [
    'https://evil.example',
    'HTTPS://evil.example/',
    'http://vault.example/x',
    'https://vault.example.evil.example/',
    'https://vault.example:444/',
    'https://vault.example@evil.example/',
    'https://user@vault.example/',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    ' //evil.example',
    ' https://evil.example',
    'https:evil.example',
    'https:/evil.example',
    'https:\\evil.example',
    'javascript:alert(1)',
    'data:text/html,x',
    'https://vault.example\\@evil.example/',
    ['https://evil.example', '/here'],
    'caf\u00e9',
  ]
  for (const location of elsewhere) {
    test(`location: ${JSON.stringify(location)}`, async () => {
      for (const name of ['Location', 'location', 'LOCATION']) {
        const reply = await afterThrowing({ [name]: location }, { publicUrl: PUBLIC })
        assert.equal(reply.headers['location'], undefined)
      }
    })
  }

  for (const [name, value] of [
    ['Set-Cookie2', 'a=b'],
    ['set_cookie2', 'a=b'],
    ['WWW-Authenticate', 'Basic realm="Symbolon"'],
    ['www_authenticate', 'Negotiate'],
    ['Refresh', '0; url=https://evil.example'],
    ['Set-Cookie', 'a=b'],
  ] as const) {
    test(`${name}: ${value}`, async () => {
      const reply = await afterThrowing({ [name]: [value, value], 'x-own': 'yes' })
      assert.equal(reply.headers[name.toLowerCase()], undefined)
      assert.equal(reply.headers['x-own'], 'yes')
    })
  }

  test('the address that the caller named, if the operator configured none', async () => {
    const reply = await afterThrowing({ location: 'http://localhost:80/x' })
    assert.equal(reply.headers['location'], undefined)
  })
})

describe('code may redirect within this service', () => {
  for (const location of ['/x', 'x/y', '?a=b', '#a', './x:y', '/x:y//z', '', `${PUBLIC}/x`]) {
    test(`with location: ${location}`, async () => {
      const reply = await afterThrowing({ location }, { publicUrl: PUBLIC })
      assert.equal(reply.headers['location'], location)
    })
  }
})

test('the operator can allow each header, and allows no other by that', async () => {
  const headers = {
    location: 'https://partner.example/3ds',
    refresh: '0; url=https://partner.example',
    'set-cookie2': 'a=b',
    'www-authenticate': 'Basic',
    'set-cookie': 'a=b',
  }
  const names = ['location', 'refresh', 'set-cookie2', 'www-authenticate'] as const
  for (const allowed of names) {
    const reply = await afterThrowing(headers, { responseHeaders: [allowed] })
    const shown = Object.keys(headers).filter((it) => reply.headers[it] !== undefined)
    assert.deepEqual(shown, [allowed])
    assert.equal(reply.headers[allowed], headers[allowed])
  }
})

test('nor do the result of an asynchronous invocation or a repeated answer have them', async () => {
  const headers = { location: 'https://evil.example', 'www-authenticate': 'Basic', 'x-own': 'yes' }
  const error = { name: 'CustomHttpResponseError', status: 302, headers, body: 'x' }
  const { react, key, vault, id, work } = await callbackStage({ behave: () => threw(error) })
  await react({ args: null }, key, { 'bt-idempotency-key': 'again' })
  const again = await react({ args: null }, key, { 'bt-idempotency-key': 'again' })
  const accepted = await vault.call('POST', `/reactors/${id}/react-async`, { key, body: {} })
  await work()
  const request = accepted.json()['asyncReactorRequestId'] as string
  const result = await vault.call('GET', `/reactors/${id}/results/${request}`, { key })
  for (const it of [again, result]) {
    const shown = [it.status, it.headers['x-own'], it.headers['location']]
    assert.deepEqual([...shown, it.headers['www-authenticate']], [302, 'yes', undefined, undefined])
  }
})

/** Limits count characters as the OpenAPI document does: in code points, of which an emoji is one. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import {
  CONFIGURATION_KEY_CHARS_MAX,
  FINGERPRINT_EXPRESSION_CHARS_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_VALUE_CHARS_MAX,
  NAME_CHARS_MAX,
  REACTOR_CODE_CHARS_MAX,
  SEARCH_QUERY_CHARS_MAX,
  TOKEN_ID_CHARS_MAX,
} from '../../src/base/limits.ts'
import { pathsOf, tokenStage, type TokenStage } from '../kit/token-stage.ts'

const EMOJI = '\u{1f600}'
const REACTOR = { name: 'r', code: 'x', configuration: {} }
const PROXY = { name: 'p', destination_url: 'https://example.com' }

let stage: TokenStage
let manager: string
before(async () => {
  stage = await tokenStage()
  const permissions = ['application:create', 'proxy:create', 'reactor:create', 'reactor:read']
  manager = await stage.vault.keyFor({ name: 'm', type: 'management', permissions })
})
after(() => stage.vault.close())

interface LimitedMember {
  readonly path: string
  readonly body: (text: string) => JsonObject
  readonly max: number
}

const MEMBERS: Readonly<Record<string, LimitedMember>> = {
  'name of an application': {
    path: '/applications',
    body: (name) => ({ name, type: 'private', permissions: ['token:read'] }),
    max: NAME_CHARS_MAX,
  },
  'name of a proxy': {
    path: '/proxies',
    body: (name) => ({ ...PROXY, name }),
    max: NAME_CHARS_MAX,
  },
  'name of a reactor': {
    path: '/reactors',
    body: (name) => ({ ...REACTOR, name }),
    max: NAME_CHARS_MAX,
  },
  'code of a reactor': {
    path: '/reactors',
    body: (code) => ({ ...REACTOR, code }),
    max: REACTOR_CODE_CHARS_MAX,
  },
  'key of a configuration': {
    path: '/reactors',
    body: (key) => ({ ...REACTOR, configuration: { [key]: 'v' } }),
    max: CONFIGURATION_KEY_CHARS_MAX,
  },
  'id of a token': { path: '/tokens', body: (id) => ({ id, data: 'x' }), max: TOKEN_ID_CHARS_MAX },
  'key of metadata': {
    path: '/tokens',
    body: (key) => ({ data: 'x', metadata: { [key]: 'v' } }),
    max: METADATA_KEY_CHARS_MAX,
  },
  'value of metadata': {
    path: '/tokens',
    body: (value) => ({ data: 'x', metadata: { k: value } }),
    max: METADATA_VALUE_CHARS_MAX,
  },
  'fingerprint expression': {
    path: '/tokens',
    body: (text) => ({ data: 'x', fingerprint_expression: text }),
    max: FINGERPRINT_EXPRESSION_CHARS_MAX,
  },
  'query of a search': {
    path: '/tokens/search',
    body: (text) => ({ query: `data:"${text.slice(7 * EMOJI.length)}"` }),
    max: SEARCH_QUERY_CHARS_MAX,
  },
}

describe('as many emojis as there may be characters, and no more, are the', () => {
  for (const [what, { path, body, max }] of Object.entries(MEMBERS)) {
    test(what, async () => {
      const { vault } = stage
      const searcher = await vault.keyFor({ permissions: ['token:search'] })
      const key = path === '/tokens' ? stage.key : path.endsWith('search') ? searcher : manager
      const most = await vault.call('POST', path, { key, body: body(EMOJI.repeat(max)) })
      assert.ok(most.status < 300, most.text)
      const more = await vault.call('POST', path, { key, body: body(EMOJI.repeat(max + 1)) })
      assert.equal(more.status, 400, more.text)
      assert.equal(pathsOf(more).length, 1)
    })
  }
})

test('a reactor is found by the longest name it may have, also between two stars', async () => {
  const { vault } = stage
  const name = EMOJI.repeat(NAME_CHARS_MAX - 1) + '*'
  const made = await vault.call('POST', '/reactors', { key: manager, body: { ...REACTOR, name } })
  assert.equal(made.status, 201)
  for (const filter of [name, `*${name}*`]) {
    const url = `/reactors?name=${encodeURIComponent(filter)}`
    const reply = await vault.call('GET', url, { key: manager })
    assert.equal(reply.status, 200, reply.text)
    const found = reply.json()['data'] as JsonObject[]
    assert.ok(
      found.some((it) => it['id'] === made.json()['id']),
      filter,
    )
  }
})

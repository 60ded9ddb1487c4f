/** A caller that measures the data of a token it may not see: by refusals, by limits, and by ballast of its own. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../../../src/base/json.ts'
import { SHOWN_DATA_BYTES_MAX, MiB } from '../../../src/base/limits.ts'
import { decodeAuditEvent } from '../../../src/ports/audit-log.ts'
import { SEED } from '../../kit/seed.ts'
import type { Reply } from '../../kit/still-vault.ts'
import { checkLengths } from '../../lengths/run.ts'
import {
  ITS_FINGERPRINT,
  lengthsStage,
  MINE,
  THEIRS,
  type LengthsStage,
} from '../../lengths/stage.ts'

test('no response depends on the length of data that the caller may not see', async () => {
  const { requests, differences } = await checkLengths({ count: 3, seed: SEED, large: false })
  assert.deepEqual(differences, [])
  assert.ok(requests > 500, String(requests))
})

describe('a binary search with ballast', () => {
  let stage: LengthsStage
  let id: string
  /** Ids of the ballast: together with the token they may reach the limit. */
  let ballast: string[]
  before(async () => {
    stage = await lengthsStage()
    id = await stage.create(LENGTH)
    ballast = stage.ballast['ballast for the limit'].slice(0, 7)
  })
  after(() => stage.close())

  const WAYS: Record<string, (values: string[]) => Promise<Reply>> = {
    detokenize: (values) => call('/detokenize', values),
    proxy: (values) => call('/proxy', values, { 'bt-proxy-url': 'https://example.com/' }),
    'dry run': (values) =>
      call('/proxy', values, {
        'bt-proxy-url': 'https://example.com/',
        'bt-proxy-dry-run': 'true',
      }),
    react: (values) => call(`/reactors/${stage.reactorId}/react`, { args: values }),
    'react-async': (values) => call(`/reactors/${stage.reactorId}/react-async`, { args: values }),
  }
  test(`finds no length by ${Object.keys(WAYS).join(', ')}, and each attempt is in the audit log`, async () => {
    const values = [...ballast, 'last', id].map((it) => `{{ ${it} }}`)
    const replies: Reply[] = []
    const earlier = await refusals()
    const found = await searched(async (length) => {
      await resize('last', LAST - length)
      const answers: Reply[] = []
      for (const ask of Object.values(WAYS)) answers.push(await ask(values))
      replies.push(...answers)
      return answers.some((it) => it.text.includes('answer_too_large'))
    })
    assert.equal(found, NO_LENGTH)
    for (const { status, text } of replies) {
      assert.equal(status, 403)
      assert.match(text, /permission_missing/)
    }
    assert.equal((await refusals()) - earlier, replies.length)
  })

  test('finds no length by duplicates, with a public key', async () => {
    const duplicates = [...ballast, 'last'].map((it) => duplicate(it, MINE))
    const found = await searched(async (length) => {
      await resize('last', LAST - length)
      const body = [...duplicates, { ...duplicate(id, THEIRS), ...SAME }]
      const { status, text } = await stage.vault.call('POST', '/tokenize', {
        key: stage.keys.public,
        body,
      })
      assert.equal(status, 200, text.slice(0, 200))
      return text.includes('answer_too_large')
    })
    assert.equal(found, NO_LENGTH)
  })

  async function call(path: string, body: Json, headers = {}): Promise<Reply> {
    return await stage.vault.call('POST', path, { key: stage.keys.denied, body, headers })
  }

  /** Makes the token `name` of the caller anew, with data of `length` bytes. */
  async function resize(name: string, length: number): Promise<void> {
    const key = stage.keys.denied
    await stage.vault.call('DELETE', `/tokens/${name}`, { key })
    const body = { ...duplicate(name, MINE), id: name, data: 'x'.repeat(length) }
    const { status, text } = await stage.vault.call('POST', '/tokens', { key, body })
    assert.equal(status, 201, text.slice(0, 200))
  }

  /** The number of refused uses of the token in the audit log. */
  async function refusals(): Promise<number> {
    const { tenantId, world } = stage.vault
    const events = await world.store.auditLog.rowsBefore(tenantId, Number.MAX_SAFE_INTEGER, 10_000)
    return events.filter(({ entry }) => {
      const { allowed, entityIds } = decodeAuditEvent(entry)
      return !allowed && entityIds.includes(id)
    }).length
  }
})

const LENGTH = 1_234_567
/** The result of a search in which no attempt exceeds the limit. */
const NO_LENGTH = 0
/** With as much data in the last token of the ballast, an empty token exceeds the limit, or almost. */
const LAST = SHOWN_DATA_BYTES_MAX - 7 * 4 * MiB - 200

const SAME = { fingerprint_expression: ITS_FINGERPRINT }

function duplicate(name: string, container: string): Record<string, Json> {
  return {
    type: 'token',
    data: 'y',
    containers: [container],
    fingerprint_expression: `{{ '${name}' }}`,
    deduplicate_token: true,
  }
}

/** Returns the least length, up to 2 Mi, that does not exceed the limit: what an attacker takes for the length. */
async function searched(exceeds: (length: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, 2 * MiB]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await exceeds(middle)) low = middle + 1
    else high = middle
  }
  return low
}

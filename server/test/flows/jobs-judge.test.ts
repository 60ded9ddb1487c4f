import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { judge, type JobFault, type SeenJobs } from '../jobs/judge.ts'
import type { ReceivedCallback } from '../jobs/receiver.ts'
import type { JsonObject } from '../../src/base/json.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const DONE = { raw: { n: 1 }, tokens: {} }

/** One job, `id-1`, accepted, run and delivered; `own` overrides fields. */
function seen(own: Partial<SeenJobs> = {}, rerun = false): SeenJobs {
  return {
    accepted: new Map([[1, { id: 'id-1', rerun }]]),
    received: [callback()],
    effects: new Map([[1, 1]]),
    deadLetters: new Set(),
    tokens: 1,
    secret: SECRET,
    ...own,
  }
}

function callback(
  own: Partial<ReceivedCallback> = {},
  id = 'id-1',
  body: JsonObject = DONE,
): ReceivedCallback {
  const text = JSON.stringify(body)
  const at = new Date(1_800_000_000_000)
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(at.getTime() / 1000),
    'webhook-signature': new Webhook(SECRET).sign(id, at, text),
  }
  return { job: 1, headers, text, body, status: 200, kill: 0, ...own }
}

const INTERRUPTED = callback({}, 'id-1', { code: 'reactor_interrupted' })

describe('judge() finds nothing in', () => {
  const innocent: [string, SeenJobs][] = [
    ['a job that was delivered', seen()],
    [
      'one that is a dead letter',
      seen({ received: [callback({ status: 410 })], deadLetters: new Set(['id-1']) }),
    ],
    [
      'one that was interrupted, before or after it did something',
      seen({ received: [INTERRUPTED], tokens: 0 }),
    ],
    [
      'one that came twice, with a kill between',
      seen({ received: [callback(), callback({ kill: 1 })] }),
    ],
    ['one that was run twice, and may be', seen({ effects: new Map([[1, 2]]) }, true)],
  ]
  for (const [about, it] of innocent) {
    test(about, () => assert.deepEqual(judge(it).stories, []))
  }
})

describe('judge() finds', () => {
  const guilty: [JobFault, SeenJobs][] = [
    ['lost', seen({ received: [], effects: new Map(), tokens: 0 })],
    ['twice', seen({ effects: new Map([[1, 2]]) })],
    ['unfounded', seen({ effects: new Map() })],
    ['renamed', seen({ received: [callback({}, 'id-2')] })],
    ['repeated', seen({ received: [callback(), callback()] })],
    ['forged', seen({ received: [callback({ text: '{"raw":{"n":2}}' })] })],
    ['torn', seen({ tokens: 2 })],
  ]
  for (const [fault, it] of guilty) {
    test(`what is ${fault}`, () => {
      const { faults } = judge(it)
      const found = Object.entries(faults).flatMap(([name, count]) => (count > 0 ? [name] : []))
      assert.deepEqual(found, [fault])
    })
  }
})

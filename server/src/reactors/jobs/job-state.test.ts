import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contextWith, stillWorld } from '../../../test/kit/still-world.ts'
import type { Answer } from '../../request/response.ts'
import { initiatorOf, openJobState, openResult, sealJobState, sealResult } from './job-state.ts'
import { newJob } from './stages.ts'

const ID = '019ca945-0a00-4000-8000-00000000000a'
const OTHER_ID = '019ca945-0a00-4000-8000-00000000000b'

test('sealResult() keeps a body as the text that is sent, so that no attempt parses it', async () => {
  const keys = await stillWorld().keyring.open(ID)
  const reopened = (answer: Answer): Answer => {
    const state = { traceId: ID, initiator, run: null, callbackUrl: null, resultUntil: null }
    const job = newJob(keys, { id: ID, reactorId: ID, now: 0 }, { ...state, ...NOTHING_YET })
    return openResult(keys, { ...job, result: sealResult(keys, ID, answer) })
  }
  const page: Answer = { status: 201, headers: { 'content-type': 'text/html' }, text: '<p>' }
  assert.deepEqual(reopened({ status: 200, body: { b: 1, a: ['é'] } }), {
    status: 200,
    text: '{"b":1,"a":["é"]}',
  })
  assert.deepEqual(reopened({ status: 200, body: null }), { status: 200, text: 'null' })
  assert.deepEqual(reopened(page), page)
  assert.deepEqual(reopened({ status: 204 }), { status: 204 })
})

test('sealJobState() names the initiator as jobs that are stored already do', async () => {
  const keys = await stillWorld().keyring.open(ID)
  const state = { traceId: ID, initiator, callbackUrl: null, resultUntil: null, ...NOTHING_YET }
  const terms = sealJobState(keys, ID, { ...state, run: null })
  const sealContext = { id: ID, part: 'terms', type: 'job', containers: [] }
  const stored = JSON.parse(keys.open(sealContext, terms).reveal()) as object
  const { initiator: _, ...rest } = state
  assert.deepEqual(stored, { ...rest, run: null, asker: initiator })
  assert.deepEqual(openJobState(keys, { id: ID, terms }), { ...state, run: null })
})

test('initiatorOf() names its members as jobs that are stored already do', () => {
  const keys = [{ applicationId: ID, keyId: OTHER_ID }]
  const context = contextWith({
    type: 'session',
    grantorId: OTHER_ID,
    applicationId: ID,
    keyId: ID,
    keys,
  })
  const stored = { permissions: [], rules: [], within: null, giverId: OTHER_ID, keys }
  assert.deepEqual(initiatorOf(context), { ...initiator, session: stored })
  assert.deepEqual(initiatorOf({ ...context, type: 'private' }), initiator)
})

const initiator = { applicationId: ID, keyId: ID, destinations: null, session: null }
const NOTHING_YET = { failure: null, status: null }

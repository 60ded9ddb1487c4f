import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stillWorld } from '../../test/kit/still-world.ts'
import { checkpointStatement, type AuditCheckpoint } from '../ports/audit-log.ts'
import {
  CHECKPOINT_EVENT,
  checkpointFields,
  isGenuineLine,
  parseCheckpointLine,
  type CheckpointLine,
} from './checkpoint-line.ts'

const TENANT = '01945d00-0000-4000-8000-00000000000a'
const OTHER = '01945d00-0000-4000-8000-00000000000b'
const CHECKPOINT: AuditCheckpoint = {
  removed: { number: 3, listed: 3, hash: new Uint8Array(32).fill(1) },
  last: { number: 17, listed: 40, hash: new Uint8Array(32).fill(254) },
  at: Date.parse('2026-03-01T12:00:00.007Z'),
  access: null,
  proof: Uint8Array.of(1),
}
const keys = await stillWorld().keyring.open(TENANT)
const FIELDS = checkpointFields(keys, TENANT, CHECKPOINT)
const LINE = JSON.stringify({ event: CHECKPOINT_EVENT, ...FIELDS })

describe('checkpointFields()', () => {
  test('returns what the checkpoint covers, and nothing about its events but their number and hash', () => {
    assert.deepEqual(
      { ...FIELDS, proof: '' },
      {
        tenant: TENANT,
        number: 17,
        removed: 3,
        hash: 'fe'.repeat(32),
        at: '2026-03-01T12:00:00.007Z',
        proof: '',
      },
    )
  })

  test('has a proof that is none for the database', () => {
    const line = parsed(LINE)
    assert.equal(isGenuineLine(keys, line), true)
    assert.equal(keys.attests(checkpointStatement(TENANT, CHECKPOINT), line.proof), false)
    const stored = keys.attest(checkpointStatement(TENANT, CHECKPOINT))
    assert.equal(isGenuineLine(keys, { ...line, proof: stored }), false)
  })
})

describe('isGenuineLine()', () => {
  const changes: [name: string, change: Partial<CheckpointLine>][] = [
    ['tenant', { tenantId: OTHER }],
    ['number', { number: 16 }],
    ['number of removed events', { removed: 0 }],
    ['hash', { hash: 'ff'.repeat(32) }],
    ['time', { at: CHECKPOINT.at + 1 }],
    ['proof', { proof: Uint8Array.of(0, 0) }],
  ]
  for (const [name, change] of changes) {
    test(`refuses a line with another ${name}`, () => {
      assert.equal(isGenuineLine(keys, { ...parsed(LINE), ...change }), false)
    })
  }
})

describe('parseCheckpointLine()', () => {
  const logged = JSON.stringify({
    level: 'info',
    time: 'now',
    event: CHECKPOINT_EVENT,
    ...FIELDS,
    later: 1,
  })
  const around: [name: string, text: string][] = [
    ['in the file', LINE],
    ['in the log', logged],
    ['that ends like one on Windows', `${logged}\r`],
    ['after the prefix of docker compose', `one-1  | ${logged}`],
    ['after the prefix of a Kubernetes runtime', `2026-03-01T12:00:00.1Z stdout F ${logged}`],
    ['after the prefix of journald', `Mar 01 12:00:00 host symbolon[7]: ${logged}`],
    ['wrapped by Docker', JSON.stringify({ log: `${logged}\n`, stream: 'stdout' })],
  ]
  for (const [name, text] of around) {
    test(`finds a checkpoint ${name}`, () => assert.deepEqual(parsed(text), parsed(LINE)))
  }

  const others: [name: string, text: string][] = [
    ['nothing', ''],
    ['a request', '{"level":"info","event":"request"}'],
    ['another event that mentions one', `{"event":"request","said":"${CHECKPOINT_EVENT}"}`],
    ['text that mentions one', `grep ${CHECKPOINT_EVENT} {} + }`],
    ['a failure of the file', '{"event":"audit_checkpoint_file_failed","file":"/a"}'],
    ['JSON that is no object', `"${CHECKPOINT_EVENT}"`],
  ]
  for (const [name, text] of others) {
    test(`passes over ${name}`, () => assert.equal(parseCheckpointLine(text), null))
  }

  test('calls every line unreadable that was cut off after its event, or lacks or garbles a member', () => {
    const event = `{"event":"${CHECKPOINT_EVENT}`
    for (let end = event.length; end < LINE.length; end++) {
      assert.equal(parseCheckpointLine(LINE.slice(0, end)), 'unreadable')
    }
    const garbled: Record<string, unknown> = {
      tenant: 'x',
      number: -1,
      removed: 0.5,
      hash: 'FE'.repeat(32),
      at: 'never',
      proof: 'zz',
    }
    for (const [name, value] of Object.entries(garbled)) {
      for (const it of [value, undefined, null, {}]) {
        const line = JSON.stringify({ event: CHECKPOINT_EVENT, ...FIELDS, [name]: it })
        assert.equal(parseCheckpointLine(line), 'unreadable', line)
      }
    }
  })
})

function parsed(text: string): CheckpointLine {
  const line = parseCheckpointLine(text)
  if (line === null || line === 'unreadable') throw new Error(`Not a checkpoint: ${text}`)
  return line
}

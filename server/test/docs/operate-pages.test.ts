/** The numbers and names on pages for operators are those of the code. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bounded } from '../../src/adapters/storage/postgres/connection.ts'
import { connectionSettings } from '../../src/adapters/storage/postgres/connection-settings.ts'
import {
  AGE_SECONDS_MAX,
  CONNECTIONS_MAX,
  TRIES_MAX,
} from '../../src/adapters/storage/postgres/database.ts'
import { sessionSettings } from '../../src/adapters/storage/postgres/session-settings.ts'
import { diskFaultOf } from '../../src/base/disk-fault.ts'
import {
  IDENTITY_CACHE_MS,
  JOB_GRACE_MS,
  KEY_ANNOUNCED_MS,
  REACTOR_TIMEOUT_ASKED_MS_MAX,
  SERVER_FORGOTTEN_MS,
} from '../../src/base/limits.ts'
import { readDocument } from '../tidy/docs.ts'

const POSTGRES = readDocument('docs/operate/postgres.md', 'PostgreSQL').replaceAll(/\s+/g, ' ')
const FAILOVER = readDocument('docs/operate/postgres-failover.md', 'failover with Patroni')
const DURABILITY = readDocument('docs/operate/durability.md', 'what an acknowledged write survives')

describe('docs/operate/postgres.md', () => {
  const { timeouts } = bounded(connectionSettings('postgres://localhost/vault'))

  test('has the limits of the code', () => {
    const sentences: [value: number, documented: number, sentence: string][] = [
      [AGE_SECONDS_MAX, 30, 'connections are replaced after 30 seconds'],
      [AGE_SECONDS_MAX, 30, 'every connection is replaced after 30 seconds'],
      [CONNECTIONS_MAX, 12, 'Each server opens up to 12 connections'],
      [TRIES_MAX, 5, 'although each is attempted five times'],
      [IDENTITY_CACHE_MS, 1_000, 'all servers know within a second'],
      [SERVER_FORGOTTEN_MS, 45_000, 'counts as running for 45 seconds'],
      [KEY_ANNOUNCED_MS, 15_000, 'takes 15 seconds longer'],
      [
        REACTOR_TIMEOUT_ASKED_MS_MAX + JOB_GRACE_MS,
        4.5 * 60_000,
        'taken over up to four and a half minutes later',
      ],
      [timeouts.statement, 4_000, '`statement_timeout` 4 s,'],
      [timeouts.lock, 3_000, '`lock_timeout` 3 s,'],
      [timeouts.idleInTransaction, 10_000, '`idle_in_transaction_session_timeout` 10 s.'],
    ]
    for (const [value, documented, sentence] of sentences) {
      assert.equal(value, documented, sentence)
      assert.ok(POSTGRES.includes(sentence), sentence)
    }
  })

  test('names every setting that the service sets', () => {
    const [, list] = /have no effect: (.*?)\. The start checks/.exec(POSTGRES)!
    const named = Array.from(list!.matchAll(/`(\w+)`/g), ([, name]) => name!)
    const bounds = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
    assert.match(list!, /^not the three timeouts,/)
    const all = Object.keys(sessionSettings(timeouts))
    assert.deepEqual([...bounds, ...named].toSorted(), all.toSorted())
  })
})

test('the proxy of docs/operate/postgres-failover.md keeps a connection longer than the service does', () => {
  const minutes = Array.from(
    FAILOVER.matchAll(/timeout (?:client|server) (\d+)m$/gm),
    (it) => it[1],
  )
  assert.equal(minutes.length, 2)
  for (const it of minutes) assert.ok(Number(it) * 60 > AGE_SECONDS_MAX)
})

test('docs/operate/durability.md has the causes for which a disk is not used', () => {
  for (const code of ['ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG']) {
    const cause = diskFaultOf(Object.assign(new Error('x'), { code }))!.replace(/ \(.*/, '')
    assert.match(DURABILITY, new RegExp(`^\\|[^|]*\`${cause}\``, 'm'), code)
  }
})

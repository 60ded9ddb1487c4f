import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { kept, Session, type CommitLevel } from './session.ts'
import { clusterUrl } from '../../../../test/kit/postgres/test-database.ts'

test('kept() gives another name to another text, so that no version ever runs the statement of another', () => {
  const [one, other] = [kept('find', 'SELECT 1'), kept('find', 'SELECT 2')]
  assert.notEqual(one.name, other.name)
  assert.deepEqual(kept('find', 'SELECT 1'), one)
  // The database truncates longer names, which could then collide.
  assert.ok(kept('insert-plain-tokens', 'SELECT 1').name.length < 64)
})

test('begin() raises synchronous_commit to the level at the start, never below on, and lowers none, in one request', async (t) => {
  const client = await connectedTo(connectionSettings(await clusterUrl()))
  t.after(() => client.end())
  const cases: [atStart: CommitLevel, now: string, committed: string][] = [
    ['on', 'off', 'on'],
    ['on', 'local', 'on'],
    ['on', 'remote_write', 'on'],
    ['on', 'on', 'on'],
    ['on', 'remote_apply', 'remote_apply'],
    ['remote_apply', 'off', 'remote_apply'],
    ['remote_apply', 'on', 'remote_apply'],
  ]
  for (const [atStart, now, committed] of cases) {
    const session = new Session(client, atStart)
    await client.query(`SET synchronous_commit = ${now}`)
    await session.begin()
    assert.equal(session.sent, 1)
    const level = async () => (await session.ask('SHOW synchronous_commit'))[0]!.synchronous_commit
    assert.equal(await level(), committed)
    await session.commit()
    assert.equal(await level(), now)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { kept, Session, type CommitLevel } from './session.ts'
import { clusterUrl, freshDatabase } from '../../../../test/kit/postgres/test-database.ts'

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

test('commit() rejects when the database warns of anything meanwhile, although it commits, and not when it only notes', async (t) => {
  const client = await connectedTo(connectionSettings(await freshDatabase()))
  t.after(() => client.end())
  // Levels below a warning are sent only if a client asks for them.
  await client.query(`CREATE TABLE told (level text); SET client_min_messages = notice;
    CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF new.level = 'warning' THEN RAISE WARNING 'told'; ELSE RAISE NOTICE 'told'; END IF;
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER tells AFTER INSERT ON told DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION tell()`)
  const session = new Session(client)
  const commit = async (level: string): Promise<void> => {
    await session.begin()
    await session.run('INSERT INTO told VALUES ($1)', [level])
    await session.commit()
  }
  await commit('notice')
  await assert.rejects(commit('warning'), /The database warned when it was asked to commit: told/)
  assert.equal((await session.ask('SELECT level FROM told')).length, 2)
})

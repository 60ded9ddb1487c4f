/** An attacker who can write to the database, but has no key, removes the checkpoint of an audit log and has a new one made. */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { after, before, test, type TestContext } from 'node:test'
import { downgrade, edit, keepFirstEvent, resetSchemaVersion } from '../kit/audit-attack.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

const verify = (folder: string) => runSymbolon(['audit', 'verify', '--data-dir', folder])

let original = ''
const cleanUps: (() => void)[] = []

before(async () => {
  original = temporaryFolder({ after: (fn) => cleanUps.push(fn) })
  const vault = await startHostedVault(original)
  try {
    const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
    for (let n = 0; n < 5; n++) {
      await fetch(`${vault.url}/applications`, { headers: { 'bt-api-key': key } })
    }
  } finally {
    assert.equal((await vault.stop()).status, 0)
  }
})

after(() => {
  for (const cleanUp of cleanUps) cleanUp()
})

/** Returns a data folder whose audit log has eight events. */
function makeVault(t: TestContext): string {
  const folder = temporaryFolder(t)
  cpSync(original, folder, { recursive: true })
  return folder
}

/** Returns what the service logged. */
async function restart(folder: string): Promise<string> {
  const vault = await startHostedVault(folder)
  await vault.stop()
  return vault.printed()
}

const REMOVED = /: BROKEN: event 1 cannot be vouched for: the checkpoint is gone/

test('an audit log that is cut to its first event, without its checkpoint, gets no other', async (t) => {
  const folder = makeVault(t)
  keepFirstEvent(folder)
  assert.match((await verify(folder)).out, REMOVED)
  for (let n = 0; n < 2; n++) assert.match(await restart(folder), /"record_unsealed"/)
  const { status, out } = await verify(folder)
  assert.equal(status, 1)
  assert.match(out, REMOVED)
})

test('nor with the schema version of before checkpoints were required', async (t) => {
  const folder = makeVault(t)
  keepFirstEvent(folder)
  resetSchemaVersion(folder)
  for (let n = 0; n < 2; n++) assert.doesNotMatch(await restart(folder), /audit_logs_upgraded/)
  assert.match((await verify(folder)).out, REMOVED)
})

test('nor with a root key check that cannot be opened, or none', async (t) => {
  for (const sql of [
    "UPDATE installation SET root_key_check = x'00'",
    'DELETE FROM installation',
  ]) {
    const folder = makeVault(t)
    keepFirstEvent(folder)
    resetSchemaVersion(folder)
    edit(folder, (db) => db.exec(`${sql}; UPDATE tenants SET name = 'other'`))
    for (let n = 0; n < 2; n++) assert.doesNotMatch(await restart(folder), /audit_logs_upgraded/)
    assert.match((await verify(folder)).out, REMOVED)
  }
})

test('the first start on an older database makes the missing checkpoint, once, and requires it from then on', async (t) => {
  const folder = temporaryFolder(t)
  await runSymbolon(['init', '--data-dir', folder])
  edit(folder, (db) => db.exec('UPDATE record_heads SET seal = NULL, sealed_number = 0'))
  await downgrade(folder)
  const older = await verify(folder)
  assert.equal(older.status, 0, older.out)
  assert.match(older.out, /not upgraded/)
  assert.match(await restart(folder), /"audit_logs_upgraded","?.*"tenants":1,"sealed":1/)
  const upgraded = await verify(folder)
  assert.match(upgraded.out, /intact, events 1 to 3, checkpoint at 3/)
  assert.doesNotMatch(upgraded.out, /not upgraded/)
  assert.doesNotMatch(await restart(folder), /audit_logs_upgraded/)

  edit(folder, (db) => db.exec('UPDATE record_heads SET seal = NULL, sealed_number = 0'))
  resetSchemaVersion(folder)
  assert.doesNotMatch(await restart(folder), /audit_logs_upgraded/)
  assert.match((await verify(folder)).out, REMOVED)
})

test('commands that write to an older database upgrade it, too', async (t) => {
  const folder = temporaryFolder(t)
  await runSymbolon(['init', '--data-dir', folder])
  edit(folder, (db) => db.exec('UPDATE record_heads SET seal = NULL, sealed_number = 0'))
  await downgrade(folder)
  const { err } = await runSymbolon(['init', '--data-dir', folder, '--name', 'other'])
  assert.match(err, /audit logs upgraded: 1 of 1 tenants have a checkpoint/)
  assert.equal((await verify(folder)).status, 0)
})

test('an edit from before the upgrade is named before and after it alike', async (t) => {
  const edits = {
    'an event under the checkpoint':
      "UPDATE record SET entry = CAST(entry || x'00' AS BLOB) WHERE number = 4",
    'an event removed': 'DELETE FROM record WHERE number = 5',
    'the first event changed, without a checkpoint': `UPDATE record SET hash = zeroblob(32) WHERE number = 3;
      UPDATE record_heads SET seal = NULL, sealed_number = 0`,
    'a forged checkpoint': "UPDATE record_heads SET seal = replace(seal, '1', '2')",
  }
  for (const [name, sql] of Object.entries(edits)) {
    const folder = makeVault(t)
    edit(folder, (db) => db.exec(sql))
    await downgrade(folder)
    const named = /BROKEN: event \d+/.exec((await verify(folder)).out)
    assert.ok(named !== null, name)
    assert.match(await restart(folder), /"audit_logs_upgraded"/)
    const { status, out } = await verify(folder)
    assert.equal(status, 1, name)
    assert.ok(out.includes(`${named[0]} `), `${name}: ${named[0]}, then ${out}`)
  }
})

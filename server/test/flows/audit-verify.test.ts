import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { STATED } from '../kit/audit-attack.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

test('symbolon audit verify says what is intact and what is not, beside a running service', async (t) => {
  const folder = temporaryFolder(t)
  const vault = await startHostedVault(folder)
  const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
  const verify = (...flags: string[]) =>
    runSymbolon(['audit', 'verify', '--data-dir', folder, ...flags])
  for (let n = 0; n < 5; n++) {
    const reply = await fetch(`${vault.url}/applications`, { headers: { 'bt-api-key': key } })
    assert.equal(reply.status, 200)
  }
  const running = await verify()
  assert.equal(running.status, 0, running.err)
  assert.match(
    running.out,
    /^tenant [0-9a-f-]{36}: intact, events 1 to 8, checkpoint at \d, ends with [0-9a-f]{64}\n {2}checked: 8 events, from 20\S+Z to 20\S+Z\n {2}checkpoint: of 20\S+Z, covers events up to \d\n/,
  )
  assert.match(running.out, /^Never covered: events of open transactions/m)
  assert.equal((await vault.stop()).status, 0)

  const stopped = JSON.parse((await verify('--json')).out) as Record<string, unknown>
  assert.deepEqual(
    { ...stopped, tenant: null, hash: null, tip: null, from: null, to: null, sealed_at: null },
    {
      tenant: null,
      intact: true,
      first: 1,
      last: 8,
      events: 8,
      from: null,
      to: null,
      hash: null,
      tip: null,
      sealed: 8,
      sealed_at: null,
      not_covered: [],
      broken: null,
      access: { revision: 2, intact: true, flaw: null },
    },
  )
  for (const time of ['from', 'to', 'sealed_at']) assert.match(String(stopped[time]), /^20\S+Z$/)

  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec("UPDATE record SET entry = CAST(entry || x'00' AS BLOB) WHERE number = 4")
  db.close()
  const broken = await verify()
  assert.equal(broken.status, 1)
  assert.match(broken.out, /: BROKEN: event 4 was changed/)
  const inJson = JSON.parse((await verify('--json')).out) as Record<string, unknown>
  assert.equal((inJson['broken'] as Record<string, unknown>)['entry'], 4)

  const [tenant] = [stopped['tenant'] as string]
  assert.equal((await verify('--tenant', tenant)).status, 1)
  const nobody = await verify('--tenant', '01945d00-0000-4000-8000-00000000000b')
  assert.match(nobody.err, /There is no tenant/)
  assert.match((await verify('--tenant', 'x')).err, /must be the id of a tenant/)
})

test('an application that was changed in the database is named by audit verify, the service and doctor', async (t) => {
  const folder = temporaryFolder(t)
  const verify = (...flags: string[]) =>
    runSymbolon(['audit', 'verify', '--data-dir', folder, ...flags])
  await runSymbolon(['init', '--data-dir', folder])
  const intact = await verify()
  assert.equal(intact.status, 0)
  assert.match(intact.out, /^ {2}access: intact, revision 2$/m)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec("UPDATE applications SET permissions = '[]'")
  db.close()

  const flaw = 'an application or key was added, changed, removed or put back outside the service'
  const { status, out } = await verify()
  assert.equal(status, 1)
  assert.match(out, /: intact, events 1 to 3/)
  assert.ok(out.includes(`  access: BROKEN: ${flaw}\n`), out)
  const inJson = await verify('--json')
  assert.equal(inJson.status, 1)
  const { access } = JSON.parse(inJson.out) as Record<string, unknown>
  assert.deepEqual(access, { revision: 2, intact: false, flaw })
  const doctor = await runSymbolon(['doctor', '--data-dir', folder])
  assert.match(doctor.out, /access-rows/)
  assert.equal(doctor.status, 1)

  // Nor does the root key check of before the upgrade, taken from an old copy, hide that.
  const rootKey = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: false })
  const known = Buffer.from('symbolon: this root key is right')
  const check = await rootKey.wrap(known, STATED['before access states'])
  const opened = new DatabaseSync(join(folder, 'symbolon.db'))
  const before = opened.prepare('SELECT root_key_check AS it FROM installation').get()!['it']!
  const put = opened.prepare('UPDATE installation SET root_key_check = ?')
  put.run(check)
  const hidden = await verify()
  assert.match(hidden.out, /^ {2}access: BROKEN/m)
  assert.equal(hidden.status, 1)
  assert.equal((await runSymbolon(['doctor', '--data-dir', folder])).status, 1)
  put.run(before)
  opened.close()

  const vault = await startHostedVault(folder)
  // The check begins with the service, and takes a moment.
  while (!vault.printed().includes('access_altered')) await fetch(`${vault.url}/health`)
  assert.equal((await vault.stop()).status, 0)
  assert.match(vault.printed(), /"access_altered".*outside the service/)
})

test('symbolon audit verify --resume continues where an earlier run stopped, and refuses any other file', async (t) => {
  const folder = temporaryFolder(t)
  const vault = await startHostedVault(folder)
  const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
  const headers = { 'bt-api-key': key }
  for (let n = 0; n < 5; n++) await fetch(`${vault.url}/applications`, { headers })
  assert.equal((await vault.stop()).status, 0)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const { hash, listed } = db.prepare('SELECT hash, listed FROM record WHERE number = 6').get()!
  const { root_key_id: rootKey } = db.prepare('SELECT root_key_id FROM installation').get()!
  // A run that continues after this event does not see it.
  db.exec("UPDATE record SET entry = CAST(entry || x'00' AS BLOB) WHERE number = 4")
  db.close()
  const verify = (...flags: string[]) =>
    runSymbolon(['audit', 'verify', '--data-dir', folder, ...flags])
  const { tenant } = JSON.parse((await verify('--json')).out) as { tenant: string }
  const file = join(folder, 'progress')
  const write = (content: object): void => {
    rmSync(file, { force: true })
    writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
  }
  const position = { number: 6, listed, hash: Buffer.from(hash as Uint8Array).toString('hex') }
  const at = { tenantId: tenant, first: 1, events: 6, from: 0, to: 1, position }
  write({ rootKey, verdicts: [], at })
  const resumed = await verify('--resume', file)
  assert.equal(resumed.status, 0, resumed.out + resumed.err)
  assert.match(resumed.out, /intact, events 1 to 8,.*\n {2}checked: 8 events, from 1970/)
  assert.equal(existsSync(file), false)

  write({ rootKey, verdicts: [], at: { ...at, position: { ...position, hash: '00' } } })
  assert.equal((await verify('--resume', file)).status, 1)
  write({ rootKey, values: 1, damaged: [] })
  assert.match((await verify('--resume', file)).err, /not a file that audit verify wrote/)
  write({ rootKey: 'another', verdicts: [], at: null })
  assert.match((await verify('--resume', file)).err, /belongs to another vault/)
})

test('symbolon audit verify goes on past a tenant that is deleted and not cleared yet', async (t) => {
  const folder = temporaryFolder(t)
  const vault = await startHostedVault(folder)
  const key = /api_key\s+(\S+)/.exec(vault.greeting)![1]!
  assert.equal((await vault.stop()).status, 0)
  const { out } = await runSymbolon(['init', '--json', '--data-dir', folder, '--name', 'other'])
  const other = (JSON.parse(out) as Record<string, unknown>)['tenant_id'] as string
  const again = await startHostedVault(folder)
  const deleted = await fetch(`${again.url}/tenants/self`, {
    method: 'DELETE',
    headers: { 'bt-api-key': key },
  })
  assert.equal(deleted.status, 204)
  await again.stop('SIGKILL')
  const verify = async (...flags: string[]) =>
    await runSymbolon(['audit', 'verify', '--data-dir', folder, ...flags])
  const said = await verify()
  assert.equal(said.status, 0, said.err)
  assert.match(said.out, /^tenant [0-9a-f-]{36}: deleted$/m)
  assert.match(said.out, new RegExp(`^tenant ${other}: intact`, 'm'))
  assert.match((await verify('--json')).out, /"deleted":true/)
})

test('symbolon audit verify says what to do where there is nothing to verify', async (t) => {
  const folder = temporaryFolder(t)
  const { status, err } = await runSymbolon(['audit', 'verify', '--data-dir', folder])
  assert.equal(status, 1)
  assert.match(err, /there is no symbolon\.db in it/)
})

test('a service that is started on a rewritten audit log does not write a checkpoint of it', async (t) => {
  const folder = temporaryFolder(t)
  const first = await startHostedVault(folder)
  const key = /api_key\s+(\S+)/.exec(first.greeting)![1]!
  const headers = { 'bt-api-key': key }
  await fetch(`${first.url}/applications`, { headers })
  assert.equal((await first.stop()).status, 0)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(`DELETE FROM record WHERE number = 4; UPDATE record_heads
    SET (number, listed, hash) = (SELECT number, listed, hash FROM record WHERE number = 3)`)
  db.close()
  const second = await startHostedVault(folder)
  for (let n = 0; n < 3; n++) await fetch(`${second.url}/applications`, { headers })
  await second.stop()
  assert.match(second.printed(), /"record_unsealed"/)
  const { status, out } = await runSymbolon(['audit', 'verify', '--data-dir', folder])
  assert.equal(status, 1)
  assert.match(out, /event 4 is not the one in the checkpoint/)
})

test('symbolon audit verify goes on past a tenant whose audit log cannot be read', async (t) => {
  const folder = temporaryFolder(t)
  const elsewhere = join(temporaryFolder(t), 'checkpoints')
  const file = { SYMBOLON_AUDIT_CHECKPOINT_FILE: elsewhere }
  await runSymbolon(['init', '--data-dir', folder], file)
  await runSymbolon(['init', '--data-dir', folder, '--name', 'other'], file)
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  const FIRST = 'tenant = (SELECT min(tenant) FROM record_heads)'
  const BACK =
    'UPDATE record SET number = 3 WHERE number > 3; UPDATE record_heads SET sealed_number = 3'
  for (const [sql, why] of [
    [`UPDATE record SET number = 1 << 60 WHERE number = 3 AND ${FIRST}`, 'too large'],
    [`UPDATE record_heads SET sealed_number = 1 << 60 WHERE ${FIRST}`, 'too large'],
    [`DELETE FROM tenant_keys WHERE ${FIRST}`, 'has none'],
  ]) {
    db.exec(`${BACK}; ${sql}`)
    const named = new RegExp(`^tenant \\S+: NOT VERIFIED: .*${why}.*\\ntenant \\S+: intact`)
    for (const more of [[], ['--against', elsewhere]]) {
      const args = ['audit', 'verify', '--data-dir', folder, ...more]
      const { status, out, err } = await runSymbolon(args)
      assert.equal(status, 1)
      assert.match(out, named, err)
    }
  }
  db.close()
  const { out } = await runSymbolon(['audit', 'verify', '--json', '--data-dir', folder])
  const [first, second] = out
    .trim()
    .split('\n')
    .map((it) => JSON.parse(it) as Record<string, unknown>)
  assert.deepEqual([first!['intact'], typeof first!['not_verified']], [false, 'string'])
  assert.equal(second!['intact'], true)
})

/** Facts that no test server has: an old version, a pooler, a remote host. */
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { passwordFor } from '../../adapters/storage/postgres/password-file.ts'
import { ConnectError, StandbyError } from '../../adapters/storage/postgres/primary-client.ts'
import type { PostgresFacts } from '../../adapters/storage/postgres/inspection.ts'
import type { CheckStatus } from './check.ts'
import type { DoctorContext } from './context.ts'
import { POSTGRES_CHECKS } from './postgres-checks.ts'

const FACTS: PostgresFacts = {
  version: '18.4',
  versionNumber: 180_004,
  user: 'vault',
  database: 'vault',
  schema: 'public',
  settings: {
    synchronous_commit: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    server_encoding: 'UTF8',
    autovacuum: 'on',
  },
  mayCreate: true,
  forbiddenTables: [],
  connectionsMax: 97,
  connections: 5,
  roleConnectionsMax: -1,
  databaseConnectionsMax: -1,
  timeMs: 0,
  connectionsNeeded: 12,
  remote: true,
  encrypted: true,
  ownSession: true,
  settingsUnheld: [],
  namesTracked: true,
  isolation: 'read committed',
  unfinishedMove: false,
}

const CASES: [name: string, status: CheckStatus, facts: Partial<PostgresFacts>, remedy: RegExp][] =
  [
    ['database', 'failed', { version: '14.9', versionNumber: 140_009 }, /PostgreSQL 15 or later/],
    [
      'writable',
      'failed',
      { schema: null, mayCreate: false },
      /ALTER SCHEMA public OWNER TO vault/,
    ],
    ['connections', 'failed', { connectionsMax: 10 }, /max_connections/],
    ['connections', 'warning', { connections: 90 }, /pg_stat_activity/],
    ['named-statements', 'failed', { namesTracked: false }, /max_prepared_statements = 100/],
    ['timeouts', 'failed', { settingsUnheld: ['lock_timeout is 0'] }, /without the pooler/],
    ['transaction-isolation', 'warning', { isolation: 'serializable' }, /Allow read committed/],
    ['database-tls', 'warning', { encrypted: false }, /Remove sslmode=disable/],
    [
      'durability',
      'failed',
      { user: 'Odd "name', settings: { ...FACTS.settings, synchronous_commit: 'off' } },
      /^ALTER ROLE "Odd ""name" SET synchronous_commit = on;$/,
    ],
  ]

for (const [name, status, facts, remedy] of CASES) {
  test(`${name} is ${status} with ${Object.keys(facts).join(' and ')} like that, and fine without`, async () => {
    const wrong = await findingOf(name, { ...FACTS, ...facts })
    assert.equal(wrong.status, status, wrong.message)
    assert.match(wrong.remedy!, remedy)
    assert.equal((await findingOf(name, FACTS)).status, 'ok')
  })
}

test('database is failed when the address leads to a standby', async () => {
  const cause = new ConnectError('db1:5432', new StandbyError())
  const finding = await unreachable(cause)
  assert.equal(finding.message, 'Cannot reach the database: db1:5432: the server is a standby.')
  assert.match(finding.remedy!, /address of the primary/)
})

describe('database names the remedy of', () => {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-doctor-passwords-'))
  after(() => rmSync(folder, { recursive: true }))
  const fileOf = (text: string, mode = 0o600): string => {
    const file = join(mkdtempSync(join(folder, 'p-')), 'pgpass')
    writeFileSync(file, text)
    chmodSync(file, mode)
    return file
  }
  const cases: [what: string, file: string | undefined, remedy: RegExp][] = [
    ['no password file', undefined, /^Set PGPASSFILE to a file of mode 600 with a line/],
    ['a password file that does not exist', '/no/such', /^Create .* or correct its name: passfile/],
    ['a password file that is a folder', folder, /^Create .* or correct its name: passfile/],
    ['a password file that others may read', fileOf('*:*:*:*:x', 0o644), /^Run chmod 600/],
    ['a password file without a line', fileOf(''), /^Give the password file a line/],
    [
      'a password file with an empty password',
      fileOf('*:*:*:*:'),
      /^Give the password file a line/,
    ],
  ]
  for (const [what, file, remedy] of cases) {
    test(what, async () => {
      const target = { host: 'db1', port: 5432, database: 'vault', user: 'vault' }
      const cause = await passwordFor(target, file).then(
        () => assert.fail('There is a password'),
        (it: Error) => it,
      )
      assert.match((await unreachable(cause)).remedy!, remedy)
    })
  }

  test('a wrong password, wherever it comes from', async () => {
    const cause = new Error('password authentication failed for user "vault"')
    const { remedy: own } = await unreachable(cause, 'postgres://vault:x@db1/vault?passfile=/p')
    assert.equal(own, 'Correct the user and the password in SYMBOLON_DATABASE_URL.')
    const { remedy } = await unreachable(cause, 'postgres://vault@db1/vault?passfile=/p')
    assert.match(remedy!, /the user in SYMBOLON_DATABASE_URL, or the password in .* '\/p'/)
  })
})

test('timeouts names what helps against a setting that only the owner of a session can change', async () => {
  const unheld = { ownSession: false, settingsUnheld: ['exit_on_error is on'] }
  const { remedy } = await findingOf('timeouts', { ...FACTS, ...unheld })
  assert.match(remedy!, /reconnect .* after ALTER ROLE vault SET exit_on_error = off;$/)
})

test('timeouts reports a pooler that drops the startup parameter, which needs no remedy', async () => {
  const { status, message } = await findingOf('timeouts', { ...FACTS, ownSession: false })
  assert.equal(status, 'ok')
  assert.match(message, /each read takes a transaction/)
})

async function unreachable(cause: Error, databaseUrl = 'postgres://vault@db1/vault') {
  const openDatabase = () => Promise.reject(new Error('Cannot reach the database', { cause }))
  const check = POSTGRES_CHECKS.find((it) => it.name === 'database')!
  return await check.run({ openDatabase, config: { databaseUrl } } as unknown as DoctorContext)
}

async function findingOf(name: string, facts: PostgresFacts) {
  const database = async () => ({ version: 1, knownVersion: 1, facts })
  const check = POSTGRES_CHECKS.find((it) => it.name === name)!
  return await check.run({ database, openDatabase: database } as unknown as DoctorContext)
}

/** PostgreSQL databases with problems: doctor reports each, and the SQL in its remedy works. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import pg from 'pg'
import { startCluster } from '../kit/postgres/cluster.ts'
import { query } from '../kit/postgres/test-database.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon, temporaryFolder } from '../kit/running-vault.ts'
import {
  assertAlone,
  assertFound,
  assertHealthy,
  assertOk,
  examine,
  runDoctor,
  until,
  variablesOf,
  type SettingVariables,
} from './doctor-stage.ts'

// A server of its own: durable, with the clock of the tests. The shared one has fsync off and may be at another date, which are findings.
const cluster = await startCluster({ durable: true, shifted: true })
after(() => cluster.stop())

/** A vault in a database that its user owns, as an operator sets it up. */
interface DatabaseVault {
  readonly folder: string
  readonly variables: SettingVariables
  /** The database as the superuser. */
  readonly admin: string
  readonly user: string
}

const vault = await databaseVault({ after })

async function databaseVault(t: Parameters<typeof temporaryFolder>[0]): Promise<DatabaseVault> {
  const home = temporaryFolder(t)
  const name = `v${randomBytes(6).toString('hex')}`
  await execute(
    cluster.url,
    `CREATE ROLE ${name} LOGIN PASSWORD 'canary'; CREATE DATABASE ${name} OWNER ${name}`,
  )
  const admin = addressOf(name)
  await execute(admin, `ALTER SCHEMA public OWNER TO ${name}`)
  const own = new URL(admin)
  own.username = name
  own.password = 'canary'
  const variables = { ...variablesOf(home), SYMBOLON_DATABASE_URL: own.href }
  const { status, err } = await runSymbolon(['init'], variables)
  assert.equal(status, 0, err)
  return { folder: join(home, 'data'), variables, admin, user: name }
}

function addressOf(database: string): string {
  const address = new URL(cluster.url)
  address.pathname = `/${database}`
  return address.href
}

/** Runs statements one by one: some must not run in a transaction with others. */
async function execute(url: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const it of statements.split(';')) if (it.trim() !== '') await client.query(it)
  } finally {
    await client.end()
  }
}

/** Returns the SQL at the end of a remedy, which begins with a command in capitals. */
function sqlOf(remedy: string): string {
  return /(?:^|: )((?:ALTER|GRANT|CREATE) .*;)$/.exec(remedy)![1]!
}

const asked = new Set<string>()

/** Breaks the shared vault with SQL, expects the check to fail, runs the SQL of the remedy, and expects it to pass. */
function breaks(
  name: string,
  status: 'warning' | 'failed',
  what: string,
  sql: (vault: DatabaseVault) => string,
  remedy: RegExp,
): void {
  asked.add(name)
  test(`${name}: finds ${what}, and nothing after the SQL of the remedy`, async () => {
    const { admin, variables } = vault
    assertOk(await examine({ variables }), name)
    await execute(admin, sql(vault))
    // A reloaded configuration takes effect a moment later.
    let found = await examine({ variables })
    await until(async () => {
      found = await examine({ variables })
      return found.get(name)?.status !== 'ok'
    })
    if (status === 'failed') assertAlone(found, name)
    await execute(admin, sqlOf(assertFound(found, name, status, remedy)))
    await until(async () => (await examine({ variables })).get(name)?.status === 'ok')
    assertOk(await examine({ variables }), name)
  })
}

describe('symbolon doctor on PostgreSQL', () => {
  test('finds nothing wrong with a healthy vault, while it serves and after', async (t) => {
    const { folder, variables } = vault
    const service = await startHostedVault(folder, { ...variables, SYMBOLON_DATA_DIR: folder })
    t.after(() => service.stop())
    const port = new URL(service.url).port
    const live = await examine({ variables: { ...variables, SYMBOLON_PORT: port }, sandbox: true })
    assertHealthy(live)
    assert.match(live.get('service')!.message, /is ready/)
    await service.stop()
    assertHealthy(await examine({ variables }))
    const { checks } = await runDoctor(variables)
    assertOk(checks, 'database', 'durability', 'tenant-keys')
  })

  test('creates no table and no folder before the first start', async (t) => {
    const home = temporaryFolder(t)
    await execute(cluster.url, 'CREATE DATABASE untouched')
    const variables = { ...variablesOf(home), SYMBOLON_DATABASE_URL: addressOf('untouched') }
    const found = await examine({ variables })
    assertFound(found, 'schema-version', 'warning', /symbolon serve/)
    assert.equal(found.get('tenant-keys')?.status, 'skipped')
    const { rows } = await query(
      addressOf('untouched'),
      "SELECT 1 FROM pg_tables WHERE schemaname = 'public'",
    )
    assert.equal(rows.length, 0)
    assert.ok(!existsSync(join(home, 'data')))
    assert.deepEqual(readdirSync(home), [])
  })

  for (const value of ['off', 'local']) {
    breaks(
      'durability',
      'failed',
      `synchronous_commit=${value} of the role`,
      ({ user }) => `ALTER ROLE ${user} SET synchronous_commit = ${value}`,
      /synchronous_commit = on/,
    )
  }
  for (const setting of ['fsync', 'full_page_writes']) {
    breaks(
      'durability',
      'failed',
      `${setting}=off`,
      () => `ALTER SYSTEM SET ${setting} = off; SELECT pg_reload_conf()`,
      new RegExp(`ALTER SYSTEM SET ${setting} = on`),
    )
  }
  breaks(
    'autovacuum',
    'warning',
    'autovacuum=off',
    () => 'ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()',
    /autovacuum = on/,
  )
  breaks(
    'writable',
    'failed',
    'a schema in which the user may create nothing',
    () => 'ALTER SCHEMA public OWNER TO postgres; REVOKE ALL ON SCHEMA public FROM PUBLIC',
    /ALTER SCHEMA public OWNER TO/,
  )
  breaks(
    'writable',
    'failed',
    'a table that the user may not write',
    ({ user }) => `REVOKE INSERT ON tokens FROM ${user}`,
    /GRANT SELECT, INSERT, UPDATE, DELETE ON public\.tokens TO/,
  )
  breaks(
    'writable',
    'failed',
    'a table that the user may not even read',
    ({ user }) => `REVOKE ALL ON tenants FROM ${user}`,
    /GRANT SELECT, INSERT, UPDATE, DELETE ON public\.tenants TO/,
  )

  test('writable: ignores tables of others in the schema, and grants nothing on them', async () => {
    const { admin, user, variables } = vault
    await execute(admin, 'CREATE TABLE spatial_ref_sys (srid integer)')
    assertOk(await examine({ variables }), 'writable', 'root-key')
    await execute(admin, `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${user}`)
    const found = await examine({ variables })
    assertAlone(found, 'writable')
    const remedy = assertFound(found, 'writable', 'failed', /GRANT .*, public\.tokens, .* TO/)
    await execute(admin, sqlOf(remedy))
    assertOk(await examine({ variables }), 'writable', 'schema-version', 'unfinished-move')
    const { rows } = await query(
      admin,
      `SELECT tablename FROM pg_tables WHERE schemaname = 'public'
         AND NOT has_table_privilege('${user}', format('%I.%I', schemaname, tablename), 'SELECT')`,
    )
    assert.deepEqual(rows, [{ tablename: 'spatial_ref_sys' }])
    await execute(admin, 'DROP TABLE spatial_ref_sys')
  })

  breaks(
    'connections',
    'failed',
    'a role with too few connections',
    ({ user }) => `ALTER ROLE ${user} CONNECTION LIMIT 5`,
    /ALTER ROLE .* CONNECTION LIMIT -1/,
  )
  breaks(
    'connections',
    'failed',
    'a database with too few connections',
    ({ user }) => `ALTER DATABASE ${user} CONNECTION LIMIT 5`,
    /ALTER DATABASE .* CONNECTION LIMIT -1/,
  )

  test('text-and-bytes: finds a database with another encoding, and accepts UTF8', async () => {
    const { variables, user } = vault
    await execute(
      cluster.url,
      `CREATE DATABASE latin OWNER ${user} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`,
    )
    const latin = new URL(variables['SYMBOLON_DATABASE_URL']!)
    latin.pathname = '/latin'
    const found = await examine({ variables: { ...variables, SYMBOLON_DATABASE_URL: latin.href } })
    assertFound(found, 'text-and-bytes', 'failed', /ENCODING 'UTF8'/)
    assertOk(await examine({ variables }), 'text-and-bytes')
  })

  test('schema-version: finds a database that is newer than the program', async () => {
    const { admin, variables } = vault
    await execute(admin, 'UPDATE schema_version SET version = version + 100')
    const found = await examine({ variables })
    assertFound(found, 'schema-version', 'failed', /Install the newer program again/)
    assert.equal(found.get('root-key')?.status, 'skipped')
    await execute(admin, 'UPDATE schema_version SET version = version - 100')
    assertOk(await examine({ variables }), 'schema-version', 'root-key')
  })

  test('unfinished-move: finds an unfinished move into the database', async () => {
    const { admin, variables } = vault
    const { rows } = await query(admin, 'SELECT * FROM moving')
    assert.equal(rows.length, 0)
    await execute(admin, MOVE)
    const found = await examine({ variables })
    assertFound(found, 'unfinished-move', 'failed', /Run symbolon migrate --from sqlite/)
    // The end of a move.
    await execute(admin, 'UPDATE moving SET finished = true')
    assertOk(await examine({ variables }), 'unfinished-move')
    await execute(admin, 'DELETE FROM moving')
  })

  test('database-clock: finds a machine whose clock is ahead', async () => {
    const { variables } = vault
    const ahead = { now: () => Date.now() + 60_000 }
    const found = await examine({ variables, machine: ahead })
    assertFound(found, 'database-clock', 'failed', /Set the clock/)
    assert.match(found.get('database-clock')!.message, /ahead of the database/)
    assertOk(await examine({ variables }), 'database-clock')
  })

  test('finds nothing wrong with settings of the role that the service sets itself', async (t) => {
    const { admin, user, variables } = vault
    const settings = {
      bytea_output: 'escape',
      default_transaction_read_only: 'on',
      default_transaction_isolation: 'serializable',
      statement_timeout: '1s',
    }
    t.after(() => execute(admin, `ALTER ROLE ${user} RESET ALL`))
    for (const [name, value] of Object.entries(settings)) {
      await execute(admin, `ALTER ROLE ${user} SET ${name} = '${value}'`)
    }
    const checks = ['writable', 'text-and-bytes', 'transaction-isolation', 'timeouts'] as const
    const values = ['root-key', 'tenant-keys', 'audit-chain'] as const
    assertOk(await examine({ variables }), ...checks, ...values)
  })

  const addresses: [what: string, change: (address: URL) => void, remedy: RegExp][] = [
    [
      'an address where no database is',
      (it) => it.searchParams.set('host', '/nonexistent'),
      /Start the database/,
    ],
    ['a database that does not exist', (it) => (it.pathname = '/nowhere'), /Create the database/],
    ['a role that does not exist', (it) => (it.username = 'nobody_here'), /Correct the user/],
    [
      'a parameter that is refused',
      (it) => it.searchParams.set('sslmode', 'prefer'),
      /Correct SYMBOLON_DATABASE_URL/,
    ],
  ]
  for (const [what, change, remedy] of addresses) {
    test(`database: finds ${what}, skips what needs it, and shows no password`, async () => {
      const { variables } = vault
      const address = new URL(variables['SYMBOLON_DATABASE_URL']!)
      change(address)
      const wrong = { ...variables, SYMBOLON_DATABASE_URL: address.href }
      const found = await examine({ variables: wrong })
      assertFound(found, 'database', 'failed', remedy)
      assertAlone(found, 'database')
      for (const it of asked) assert.equal(found.get(it)?.status, 'skipped', it)
      assert.doesNotMatch(JSON.stringify([...found.values()]), /canary/)
      assertOk(await examine({ variables }), 'database')
    })
  }

  test('certificates: finds an sslrootcert that does not exist', async () => {
    const { variables } = vault
    const address = new URL(variables['SYMBOLON_DATABASE_URL']!)
    address.searchParams.set('sslrootcert', '/nonexistent/ca.pem')
    const wrong = { ...variables, SYMBOLON_DATABASE_URL: address.href }
    const found = await examine({ variables: wrong })
    assertFound(found, 'certificates', 'failed', /Set SYMBOLON_DATABASE_URL/)
    assert.ok(!(await examine({ variables })).has('certificates'))
  })
})

const MOVE = `INSERT INTO moving VALUES (1, '01945d00-0000-4000-8000-00000000000b', 'tokens', NULL, false)`

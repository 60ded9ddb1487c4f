/** `symbolon migrate` as an operator runs it: resumed, refused, misled. */
import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import { AgeIdentity } from '../../src/adapters/age/age-keys.ts'
import { holdDataFolder } from '../../src/adapters/storage/sqlite/data-folder.ts'
import { meddlingProxy } from '../kit/postgres/meddling-proxy.ts'
import { freshDatabase, query } from '../kit/postgres/test-database.ts'
import { contentOf, preparedVault } from '../kit/prepared-vault.ts'
import {
  type Finished,
  runProgram,
  runSymbolon,
  startVault,
  temporaryFolder,
} from '../kit/running-vault.ts'

describe('a data folder that was moved', () => {
  test('is not served from any more, and says what to do; the database is', async (t) => {
    const { folder, database, move } = await stage(t)
    const { status, out, err } = await move()
    assert.deepEqual([status, err], [0, ''])
    assert.match(out, /^tenants +1 rows {2}[0-9a-f]{16} {2}equal$/m)
    assert.match(out, /^1 tenants, 0 tokens, 3 values decrypted$/m)
    for (const command of ['serve', 'init']) {
      const refused = await runSymbolon([command, '--data-dir', folder])
      assert.equal(refused.status, 1)
      assert.match(refused.err, /its data was moved to a PostgreSQL database, and goes on there/)
    }
    await works(folder, database)
  })

  test('is moved once: the same command says so, another database is refused', async (t) => {
    const { move } = await stage(t)
    await move()
    const again = await move()
    assert.equal(again.status, 0)
    assert.equal(again.out, 'The vault was moved to this database before; nothing was changed.\n')
    const other = await freshDatabase()
    const elsewhere = await move({ SYMBOLON_DATABASE_URL: other })
    assertRefused(elsewhere, /was moved to another database already; remove symbolon\.moved/)
    assert.equal((await query(other, 'SELECT 1 FROM installation')).rowCount, 0)
  })

  test('is served from again when its mark is removed, and what was begun is refused from then on', async (t) => {
    const { folder, database, move } = await stage(t)
    await interrupt(move, database)
    const marked = await runProgram(['serve', '--data-dir', folder])
    assertRefused(marked, /is on its way to a PostgreSQL database: run symbolon migrate again/)
    rmSync(join(folder, 'symbolon.moved'))
    await works(folder)
    assertRefused(await move(), /holds part of another vault, or of an abandoned move/)
  })

  test('is backed up no more, for what goes on is elsewhere', async (t) => {
    const { folder, move } = await stage(t)
    await move()
    const { identity } = await AgeIdentity.make()
    const to = join(folder, 'late.age')
    const flags = ['--data-dir', folder, '--to', to, '--recipient', String(identity.recipient)]
    assertRefused(await runSymbolon(['backup', ...flags]), /its data was moved to a PostgreSQL/)
    assert.ok(!existsSync(to))
  })
})

describe('a database that half a vault is in', () => {
  test('is served by no server, and finished by the same command', async (t) => {
    const { folder, database, move } = await stage(t)
    await interrupt(move, database)
    const held = await heldIn(database)
    const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_DATABASE_URL: database }
    writeFileSync(join(folder, 'next'), Buffer.alloc(32, 8), { mode: 0o600 })
    for (const command of [
      ['serve'],
      ['init'],
      ['audit', 'verify'],
      ['keys', 'rotate', '--root'],
    ]) {
      const refused = await runSymbolon(command, {
        ...variables,
        SYMBOLON_ROOT_KEY_NEXT_FILE: join(folder, 'next'),
      })
      assertRefused(refused, /a vault is on its way into it, and not all of it is there/)
    }
    assert.deepEqual(await heldIn(database), held)
    const { status, err } = await move()
    assert.deepEqual([status, err], [0, ''])
    await works(folder, database)
  })

  test('that another program wrote to is found out, and stays unserved', async (t) => {
    const { folder, database, move } = await stage(t)
    await interrupt(move, database)
    await query(database, "UPDATE tenants SET name = 'another'")
    const compared = await move()
    assertRefused(compared, /differs from the folder \(tenants\)/)
    assert.match(compared.out, /^tenants .* NOT EQUAL$/m)
    const refused = await runProgram(['serve'], {
      SYMBOLON_DATA_DIR: folder,
      SYMBOLON_DATABASE_URL: database,
    })
    assertRefused(refused, /not all of it is there/)
  })
})

describe('symbolon migrate', () => {
  test('refuses a folder that is being served, and a folder without a vault', async (t) => {
    const { folder, database, move } = await stage(t)
    const held = holdDataFolder(folder)
    t.after(() => held.release())
    assertRefused(await move(), /Cannot open \S+: another process is using it/)
    assert.deepEqual(await tablesOf(database), [])
    const empty = await move({ SYMBOLON_DATA_DIR: join(folder, 'none') })
    assertRefused(empty, /there is no symbolon\.db in it/)
    assert.ok(!existsSync(join(folder, 'none')))
  })

  test('refuses another root key, before anything is written', async (t) => {
    const { folder, database, move } = await stage(t)
    const other = join(folder, 'other.key')
    writeFileSync(other, Buffer.alloc(32, 5), { mode: 0o600 })
    const refused = await move({ SYMBOLON_ROOT_KEY_FILE: other })
    assertRefused(refused, /set up with root key [0-9a-f]{16}, but root key [0-9a-f]{16} was given/)
    assert.deepEqual(await tablesOf(database), [])
    assert.ok(!existsSync(join(folder, 'symbolon.moved')))
  })

  test('refuses a database with a vault in it, and one of another program', async (t) => {
    const { folder, database, move } = await stage(t)
    const { where } = await preparedVault(t, 'PostgreSQL')
    const { SYMBOLON_DATABASE_URL: filled } = where
    const before = stateOf(folder)
    assertRefused(await move({ SYMBOLON_DATABASE_URL: filled! }), /it holds a vault already/)
    await query(database, 'CREATE TABLE accounts (a integer)')
    assertRefused(await move(), /it has a table accounts that is not ours/)
    assert.deepEqual(await tablesOf(database), ['accounts'])
    assert.deepEqual(stateOf(folder), before)
  })

  test('says so when it reaches no database, and leaves the folder as it is', async (t) => {
    const { folder, move } = await stage(t)
    const before = stateOf(folder)
    for (const host of ['127.0.0.1', 'localhost']) {
      const address = `postgres://symbolon:hunter2@${host}:9/symbolon`
      const refused = await move({ SYMBOLON_DATABASE_URL: address })
      assertRefused(refused, /Cannot reach the database \(\S+: connect ECONNREFUSED/)
      assert.doesNotMatch(refused.err, /hunter2/)
    }
    assert.deepEqual(stateOf(folder), before)
  })

  test('goes on where the connection was lost: before, at, and after a commit', async (t) => {
    const { folder, database, move } = await stage(t)
    const proxy = await meddlingProxy(database)
    t.after(() => proxy.close())
    for (const [statement, fate] of [
      ['INSERT INTO moving', 'lose'],
      ['INSERT INTO tenants', 'lose'],
      ['COMMIT', 'lose'],
      ['COMMIT', 'lose-answer'],
      ['SELECT tenant, serial', 'lose-answer'],
      ['UPDATE moving SET finished', 'lose'],
    ] as const) {
      // The first are those of its migrations, and of its beginning.
      let before = statement === 'COMMIT' ? 3 : 0
      proxy.decide = (it) => (it.startsWith(statement) && before-- === 0 ? fate : 'pass')
      const { status, err } = await move({ SYMBOLON_DATABASE_URL: proxy.url })
      assert.equal(status, 1, `${statement} ${fate}`)
      assert.match(
        err,
        /^symbolon migrate: The connection to the database was lost; run the same command again/,
      )
    }
    // Neither side is served until the other knows.
    assertRefused(await runProgram(['serve', '--data-dir', folder]), /its data was moved to/)
    proxy.decide = () => 'pass'
    const { status, err } = await move({ SYMBOLON_DATABASE_URL: proxy.url })
    assert.deepEqual([status, err], [0, ''])
    await works(folder, database)
  })

  test('refuses a vault whose data key is being replaced: no server would go on with that', async (t) => {
    const { folder, move } = await stage(t)
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    db.exec(`INSERT INTO tenant_keys SELECT tenant, purpose, 2, wrapped, created_at FROM tenant_keys
      WHERE purpose = 'enc'`)
    db.close()
    assertRefused(await move(), /the data key of tenant \S+ is being replaced/)
  })

  test('asks for where from, where to, and the database', async (t) => {
    const folder = temporaryFolder(t)
    const run = (...args: string[]) => runSymbolon(['migrate', '--data-dir', folder, ...args])
    assertRefused(await run(), /--from is missing, but must be sqlite/)
    assertRefused(await run('--from', 'sqlite', '--to', 'mysql'), /--to is 'mysql', but must be/)
    assertRefused(
      await run('--from', 'sqlite', '--to', 'postgres'),
      /SYMBOLON_DATABASE_URL is unset/,
    )
  })
})

type RunMove = (variables?: Record<string, string>) => Promise<Finished>

/** A vault that was never served, and an empty database. */
async function stage(t: TestContext) {
  const { folder } = await preparedVault(t)
  const database = await freshDatabase()
  const move: RunMove = (variables) =>
    runSymbolon(['migrate', '--from', 'sqlite', '--to', 'postgres'], {
      SYMBOLON_DATA_DIR: folder,
      SYMBOLON_DATABASE_URL: database,
      ...variables,
    })
  return { folder, database, move }
}

/** Returns the names of the files in a data folder that a start looks for, and every row of its database. */
function stateOf(folder: string): unknown {
  const files = ['root.key', 'symbolon.db', 'symbolon.moved']
  return [files.filter((it) => existsSync(join(folder, it))), contentOf(folder)]
}

/** Cuts the move off when its tenants have arrived. */
async function interrupt(move: RunMove, database: string): Promise<void> {
  const proxy = await meddlingProxy(database)
  proxy.decide = (it) => (it.startsWith('INSERT INTO applications') ? 'lose' : 'pass')
  const { status } = await move({ SYMBOLON_DATABASE_URL: proxy.url })
  assert.equal(status, 1)
  await proxy.close()
}

async function works(folder: string, database?: string): Promise<void> {
  const variables = database === undefined ? {} : { SYMBOLON_DATABASE_URL: database }
  const vault = await startVault(folder, variables)
  assert.equal((await fetch(`${vault.url}/health/ready`)).status, 200)
  assert.doesNotMatch(vault.greeting, /Welcome/)
  await vault.stop()
}

function assertRefused({ status, err }: Finished, sentence: RegExp): void {
  assert.equal(status, 1)
  assert.match(err, sentence)
  assert.match(err, /^symbolon [a-z ]+: [^\n]+\n$/, 'one sentence')
}

async function tablesOf(database: string): Promise<string[]> {
  const { rows } = await query(
    database,
    "SELECT tablename AS it FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
  )
  return rows.map((row) => String(row.it))
}

/** How far the move is, and how much there is. */
async function heldIn(database: string): Promise<unknown> {
  const { rows } = await query(
    database,
    `SELECT at_table, after_row, finished, (SELECT count(*) FROM tenants) AS tenants,
       (SELECT count(*) FROM applications) AS applications FROM moving`,
  )
  return rows
}

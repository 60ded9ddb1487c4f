/** `SYMBOLON_NO_CREATE` and `--no-create`: a start that finds no vault creates none. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { freshDatabase, query } from '../kit/postgres/test-database.ts'
import { preparedVault } from '../kit/prepared-vault.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runProgram, runSymbolon, temporaryFolder } from '../kit/running-vault.ts'

const HINT =
  'SYMBOLON_NO_CREATE (--no-create) forbids creating one: check WHERE and the mounts, or unset ' +
  'SYMBOLON_NO_CREATE to create a new vault'

describe('without a vault in the data folder', () => {
  test('serve and init are refused, say what they looked for and where, and create nothing', async (t) => {
    const parent = temporaryFolder(t)
    const missing = join(parent, 'missing', 'data')
    const bare = join(parent, 'bare')
    const empty = join(parent, 'empty')
    mkdirSync(bare)
    mkdirSync(empty)
    writeFileSync(join(empty, 'symbolon.db'), '')
    const cases: [folder: string, what: string][] = [
      [missing, 'there is no symbolon.db in it'],
      [bare, 'there is no symbolon.db in it'],
      [empty, 'symbolon.db in it is empty, so no vault was set up there'],
    ]
    const before = filesBelow(parent)
    for (const [folder, what] of cases) {
      for (const command of ['serve', 'init']) {
        const { status, out, err } = await runSymbolon([
          command,
          '--no-create',
          '--data-dir',
          folder,
        ])
        assert.deepEqual([status, out], [1, ''])
        const hint = HINT.replace('WHERE', 'SYMBOLON_DATA_DIR')
        assert.equal(err, `symbolon ${command}: Cannot open ${folder}: ${what}; ${hint}\n`)
      }
    }
    assert.deepEqual(filesBelow(parent), before)
    assert.equal(existsSync(missing), false)
  })

  test('an unfinished first start counts as no vault', async (t) => {
    const folder = temporaryFolder(t)
    await (await SqliteStore.open({ folder })).close()
    const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_NO_CREATE: 'on' }
    const { status, out, err } = await runProgram(['serve'], variables)
    assert.deepEqual([status, out], [1, ''])
    assert.match(err, /no vault was set up there; SYMBOLON_NO_CREATE/)
    assert.equal(existsSync(join(folder, 'root.key')), false)
  })
})

test('a vault that exists is served, and init adds tenants to it', async (t) => {
  const { folder, where } = await preparedVault(t)
  const variables = { ...where, SYMBOLON_NO_CREATE: 'on' }
  const init = await runSymbolon(['init', '--name', 'second'], variables)
  assert.equal(init.status, 0, init.err)
  const vault = await startHostedVault(folder, variables)
  assert.equal((await vault.stop()).status, 0)
})

test('the flag needs no value, and a value overrides the variable', async (t) => {
  const parent = temporaryFolder(t)
  for (const [at, args] of [['--no-create', 'off'], ['--no-create=off']].entries()) {
    const variables = { SYMBOLON_DATA_DIR: join(parent, String(at)), SYMBOLON_NO_CREATE: 'on' }
    const { status, err } = await runSymbolon(['init', ...args], variables)
    assert.equal(status, 0, err)
  }
  for (const args of [['--no-create', 'on'], ['--no-create=on'], ['--no-create', '--json']]) {
    const { status, err } = await runSymbolon(['init', ...args], {
      SYMBOLON_DATA_DIR: join(parent, 'x'),
    })
    assert.equal(status, 1)
    assert.match(err, /forbids creating one/)
  }
  const other = await runSymbolon(['init', '--no-create=yes'])
  assert.equal(other.err, "symbolon init: --no-create is 'yes', but must be on or off.\n")
})

describe('with an empty PostgreSQL database', () => {
  test('serve and init are refused, and create neither tables nor a data folder', async (t) => {
    const database = await freshDatabase()
    const folder = join(temporaryFolder(t), 'data')
    const variables = { SYMBOLON_DATABASE_URL: database, SYMBOLON_DATA_DIR: folder }
    for (const command of ['serve', 'init']) {
      const { status, out, err } = await runSymbolon([command, '--no-create'], variables)
      assert.deepEqual([status, out], [1, ''])
      const name = new URL(database).pathname.slice(1)
      const hint = HINT.replace('WHERE', 'SYMBOLON_DATABASE_URL')
      const said = `Cannot open the database: there is no vault in ${name}, schema public; ${hint}`
      assert.equal(err, `symbolon ${command}: ${said}\n`)
    }
    await assertEmpty(database)
    assert.equal(existsSync(folder), false)
  })

  test('keys rotate and audit verify create nothing, whatever the settings say', async (t) => {
    const database = await freshDatabase()
    const folder = join(temporaryFolder(t), 'data')
    const variables = { SYMBOLON_DATABASE_URL: database, SYMBOLON_DATA_DIR: folder }
    for (const command of [
      ['keys', 'rotate'],
      ['audit', 'verify'],
    ]) {
      const { status, out, err } = await runSymbolon(command, variables)
      assert.deepEqual([status, out], [1, ''])
      assert.match(err, /there is no(?:ne| vault) in/)
    }
    await assertEmpty(database)
    assert.equal(existsSync(folder), false)
  })

  test('a vault that exists is served', async (t) => {
    const { folder, where } = await preparedVault(t, 'PostgreSQL')
    const vault = await startHostedVault(folder, { ...where, SYMBOLON_NO_CREATE: 'on' })
    assert.equal((await vault.stop()).status, 0)
  })
})

test('audit verify creates no root key where nothing was set up', async (t) => {
  const folder = temporaryFolder(t)
  await (await SqliteStore.open({ folder })).close()
  const { status } = await runSymbolon(['audit', 'verify', '--data-dir', folder])
  assert.equal(status, 1)
  assert.equal(existsSync(join(folder, 'root.key')), false)
})

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

async function assertEmpty(database: string): Promise<void> {
  const sql = "SELECT count(*) AS count FROM pg_class WHERE relnamespace = 'public'::regnamespace"
  assert.equal(Number((await query(database, sql)).rows[0].count), 0)
}

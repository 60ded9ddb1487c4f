/** SQLite databases with problems: doctor reports each, and its remedy works. */
import assert from 'node:assert/strict'
import {
  closeSync,
  existsSync,
  globSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test, type TestContext } from 'node:test'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { runSymbolon } from '../kit/running-vault.ts'
import {
  assertFound,
  assertOk,
  backedUp,
  copyOf,
  examine,
  killedVault,
  stoppedVault,
  type StoppedVault,
} from './doctor-stage.ts'

/** Tests break copies of it. */
const original = await stoppedVault({ after })
const restore = await backedUp(original)

/** A vault whose service was killed after its first start, most of which is in the write-ahead log. */
const killed = killedVault({ after })

/** Breaks a copy, expects the check to fail, restores a backup as the remedy says, and expects the check to pass. */
async function breakAndRestore(
  t: TestContext,
  harm: (vault: StoppedVault) => void,
  name: string,
): Promise<void> {
  const vault = copyOf(t, original)
  harm(vault)
  const { variables } = vault
  const found = await examine({ integrity: true, variables })
  assertFound(found, name, 'failed', /symbolon restore/)
  for (const it of found.values()) {
    if (it.status === 'failed') assert.match(it.remedy!, /symbolon restore/, it.message)
  }
  const restored = await restore(vault)
  assertOk(
    await examine({ integrity: true, variables: restored }),
    'database',
    'integrity',
    'schema-version',
    'root-key',
    'audit-chain',
  )
}

function change({ folder }: StoppedVault, sql: string): void {
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(sql)
  db.close()
}

/** Overwrites bytes of the database file, as a faulty disk does. */
function overwrite({ folder }: StoppedVault, at: number, bytes: number): void {
  const file = openSync(join(folder, 'symbolon.db'), 'r+')
  writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, at)
  closeSync(file)
}

describe('symbolon doctor on a database', () => {
  test('schema-version: finds a database that is newer than the program', async (t) => {
    await breakAndRestore(t, (it) => change(it, 'PRAGMA user_version = 999'), 'schema-version')
  })

  test('schema-version: finds one that is older, and none after the next start', async (t) => {
    const vault = copyOf(t, original)
    const { folder, variables } = vault
    rmSync(join(folder, 'symbolon.db'))
    const [first] = globSync('../../src/adapters/storage/sqlite/migrations/*.sql', {
      cwd: import.meta.dirname,
    }).toSorted()
    const db = new DatabaseSync(join(folder, 'symbolon.db'))
    db.exec(readFileSync(join(import.meta.dirname, first!), 'utf8'))
    db.exec('PRAGMA user_version = 1; PRAGMA journal_mode = WAL')
    db.close()
    const found = await examine({ integrity: true, variables })
    assertFound(found, 'schema-version', 'warning', /start the service \(symbolon serve\)/)
    assert.equal(found.get('tenant-keys')?.status, 'skipped')
    const service = await startHostedVault(folder, variables)
    await service.stop()
    assertOk(await examine({ integrity: true, variables }), 'schema-version', 'tenant-keys')
  })

  test('integrity: finds a damaged page', async (t) => {
    await breakAndRestore(t, (it) => overwrite(it, 5 * 4096, 4096), 'integrity')
  })

  test('database: finds a file that is no longer a database', async (t) => {
    await breakAndRestore(t, (it) => overwrite(it, 0, 4096), 'database')
  })

  test('database: finds a truncated file', async (t) => {
    const cut = ({ folder }: StoppedVault): void => {
      const path = join(folder, 'symbolon.db')
      truncateSync(path, statSync(path).size / 2)
    }
    await breakAndRestore(t, cut, 'database')
  })

  test('database: finds that the file is gone from a folder that was used', async (t) => {
    await breakAndRestore(t, ({ folder }) => rmSync(join(folder, 'symbolon.db')), 'database')
  })

  test('database: finds a log without its index, which the next start reads', async (t) => {
    const { folder, variables } = copyOf(t, await killed)
    rmSync(join(folder, 'symbolon.db-shm'))
    const found = await examine({ integrity: true, variables })
    assertFound(found, 'database', 'failed', /Start the service once/)
    assert.ok(!existsSync(join(folder, 'symbolon.db-shm')))
    await (await startHostedVault(folder, variables)).stop()
    assertOk(await examine({ integrity: true, variables }), 'database', 'integrity', 'tenant-keys')
  })

  test('write-ahead-log: finds one that has grown, which the next start checkpoints', async (t) => {
    const { folder, variables } = copyOf(t, await killed)
    truncateSync(join(folder, 'symbolon.db-wal'), 65 * 1024 * 1024)
    assertFound(
      await examine({ integrity: true, variables }),
      'write-ahead-log',
      'warning',
      /symbolon serve/,
    )
    await (await startHostedVault(folder, variables)).stop()
    assertOk(await examine({ integrity: true, variables }), 'write-ahead-log', 'integrity')
  })

  test('audit-chain: finds a rewritten event at the end of an audit log', async (t) => {
    const rewrite = (it: StoppedVault): void =>
      change(
        it,
        `UPDATE record SET entry = CAST(entry || x'00' AS BLOB)
         WHERE number = (SELECT max(number) FROM record)`,
      )
    const vault = copyOf(t, original)
    rewrite(vault)
    const { variables } = vault
    const remedy = assertFound(
      await examine({ integrity: true, variables }),
      'audit-chain',
      'failed',
      /restore a backup/,
    )
    const [, command] = /Run symbolon (audit verify --tenant \S+) and/.exec(remedy)!
    const verified = await runSymbolon(command!.split(' '), variables)
    assert.match(verified.out, /BROKEN/)
    assertOk(await examine({ integrity: true, variables: await restore(vault) }), 'audit-chain')
  })
})

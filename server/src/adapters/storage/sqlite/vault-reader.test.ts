import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { TENANT, freshFolder, insertNumbered, openStore } from '../../../../test/kit/sqlite-kit.ts'
import { MOVE_BYTES_AT_ONCE, MOVE_ROWS_AT_ONCE } from '../../../base/limits.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { VAULT_TABLES, VAULT_TABLE_NAMES, type VaultTable } from '../../../ports/vault-tables.ts'
import { migrate } from './migrate.ts'
import { chunkQuery } from './vault-reader.ts'
import { openVaultSource } from './vault-source.ts'

/** Tables that are not moved, and why. */
const STAYS: Readonly<Record<string, string>> = {
  job_sizes: 'sums of the jobs, made by triggers',
  pulse: 'it is written to prove that writing works, and says nothing',
  token_blocks: 'it follows from tokens: pages are found by it here',
  units: 'what is open of it is in tokens.made_in; what was never finished is removed before',
}

/** Columns that only this store has, and what is moved instead: for events that share a row, separate rows. */
const TIES = {
  'transactions.number': null,
  'record.earlier': null,
  'tokens.unit': 'tokens.made_in',
  'token_counts.unit': 'token_counts.made_in',
}

test('every table and column is one that moves, or known to stay', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  const here = db
    .prepare(
      `SELECT m.name AS of, c.name AS name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
       WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
    )
    .all()
    .filter((row) => !(String(row['of']) in STAYS))
    .map((row) => `${String(row['of'])}.${String(row['name'])}`)
  const moving = VAULT_TABLE_NAMES.flatMap((table) =>
    Object.keys(VAULT_TABLES[table].columns).map((it) => `${table}.${it}`),
  )
  const crossing = new Set(Object.values(TIES))
  const expected = [...moving.filter((it) => !crossing.has(it as never)), ...Object.keys(TIES)]
  assert.deepEqual(here.toSorted(), expected.toSorted())
  db.close()
})

test('tables are read in the order of a key, without sorting; but sums, which are few', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  for (const table of VAULT_TABLE_NAMES.filter((it) => it !== 'token_counts')) {
    for (const after of [null, '']) {
      const { key }: VaultTable = VAULT_TABLES[table]
      const plan = db
        .prepare(`EXPLAIN QUERY PLAN ${chunkQuery(table, after)}`)
        .all(...(after === null ? [] : key.map(() => 1)))
      const steps = plan.map((row) => String(row['detail']))
      assert.doesNotMatch(steps.join('; '), /TEMP B-TREE/, table)
      if (after !== null) assert.match(steps[0]!, /^SEARCH/, table)
    }
  }
  db.close()
})

test('chunks hold so many rows, or so many bytes, and each row once', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  const many = insertNumbered(0, MOVE_ROWS_AT_ONCE + 3)
  await store.commit(TENANT, [many])
  assert.ok(many.kind === 'insert-tokens')
  const [large] = many.tokens
  const tokens = Array.from({ length: 7 }, (_, n): StoredToken => {
    const id = `10000000-0000-4000-8000-00000000000${n}`
    return {
      ...large!,
      id,
      internalId: id,
      data: new Uint8Array(MOVE_BYTES_AT_ONCE / 2),
      indexes: [],
    }
  })
  await store.commit(TENANT, [{ kind: 'insert-tokens', tokens }])
  await store.close()

  const source = openVaultSource(folder)
  t.after(() => source.close())
  const lengths: number[] = []
  const internalIds: unknown[] = []
  assert.equal(source.left('tokens', null), MOVE_ROWS_AT_ONCE + 10)
  for (let after: string | null = null; ;) {
    const { rows, last } = await source.readChunk('tokens', after)
    lengths.push(rows.length)
    internalIds.push(...rows.map((it) => it[1]))
    after = last
    if (last === null) break
    assert.equal(source.left('tokens', last), MOVE_ROWS_AT_ONCE + 10 - internalIds.length)
  }
  assert.deepEqual(lengths, [MOVE_ROWS_AT_ONCE, 5, 2, 2, 1, 0])
  assert.equal(new Set(internalIds).size, MOVE_ROWS_AT_ONCE + 10)
})

test('what was never finished does not move, and nothing of it is found', async (t) => {
  const folder = freshFolder(t)
  const store = await openStore(t, { folder })
  await store.commit(TENANT, [insertNumbered(0, 5)])
  await store.close()
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  db.exec(`INSERT INTO units (id, tenant, first_serial, last_serial)
      SELECT 9, tenant, min(serial), max(serial) FROM tokens;
    UPDATE tokens SET unit = 9 WHERE serial > (SELECT min(serial) FROM tokens)`)
  db.close()
  const source = openVaultSource(folder)
  t.after(() => source.close())
  for (const table of ['tokens', 'token_indexes'] as const) {
    assert.equal((await source.readChunk(table, null)).rows.length, 1)
  }
})

test('a source is not written to, and no other process can open it', async (t) => {
  const folder = freshFolder(t)
  await (await openStore(t, { folder })).close()
  const source = openVaultSource(folder)
  t.after(() => source.close())
  assert.throws(() => openVaultSource(folder), /another process is using it/)
  await assert.rejects(openStore(t, { folder }), /another process is using it/)
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import { MOVE_BYTES_AT_ONCE, MOVE_ROWS_AT_ONCE } from '../../../base/limits.ts'
import {
  VAULT_TABLES,
  VAULT_TABLE_NAMES,
  type MovePoint,
  type VaultRow,
  type VaultTableName,
  type VaultValue,
} from '../../../ports/vault-tables.ts'
import { PostgresStore } from './store.ts'
import { tableHere } from './vault-columns.ts'
import { withVaultTarget, type PostgresVaultTarget } from './vault-target.ts'

/** Tables that a move does not fill, and why. */
const OWN: Readonly<Record<string, string>> = {
  moving: 'how far the move is',
  pulse: 'it is written to prove that writing works, and says nothing',
  schema_version: 'what the program made of the database',
}

const DERIVED = ['tokens.uuid_name', 'tenant_heads.sealed_from']

test('every table and column is one that something moves to, or known not to be', () => {
  const schema = readFileSync(new URL('./schema.sql', import.meta.url), 'utf8')
  const here = schema
    .split(/^CREATE TABLE /m)
    .slice(1)
    .flatMap((text) => {
      const table = text.split(' ')[0]!
      const columns = [...text.matchAll(/^ {2}([a-z_]+) [a-z]/gm)].map((it) => `${table}.${it[1]}`)
      return table in OWN ? [] : columns
    })
  const moving = VAULT_TABLE_NAMES.flatMap((table) =>
    Object.keys(VAULT_TABLES[table].columns).map((it) => `${tableHere(table)}.${it}`),
  )
  assert.deepEqual(here.toSorted(), [...moving, ...DERIVED].toSorted())
})

describe('a target', () => {
  test('shows what arrived as it was, whatever texts are in it, and chunk by chunk', async () => {
    await begun(async (target, { arrive, url }) => {
      let after: string | null = null
      let number = 0
      await fc.assert(
        fc.asyncProperty(fc.array(aToken, { minLength: 1, maxLength: 3 }), async (tokens) => {
          const rows = tokens.map((it) => {
            number += 1
            const uuid = it.name === 'uuid' ? internalId(1e6 + number) : `${it.name} ${number}`
            const name = it.name === 'none' ? null : uuid
            return rowOf('tokens', { ...it, name, serial: internalId(number) })
          })
          await arrive('tokens', rows)
          const chunk = await target.readChunk('tokens', after)
          assert.deepEqual(plain(chunk.rows), plain(rows))
          after = chunk.last
        }),
        { numRuns: 60 },
      )
      assert.deepEqual(await target.readChunk('tokens', after), { rows: [], last: null })
      const { rows } = await query(
        url,
        'SELECT count(uuid_name) AS named, count(CASE WHEN uuid_name::text = name THEN 1 END) AS alike FROM tokens',
      )
      assert.ok(Number(rows[0].named) > 0)
      assert.equal(rows[0].alike, rows[0].named)
    })
  })

  test('shows so many rows at a time, or so many bytes, and each once', async () => {
    await begun(async (target, { arrive }) => {
      const small = Array.from({ length: MOVE_ROWS_AT_ONCE + 2 }, (_, n) => answer(`a ${n}`, 1))
      const large = Array.from({ length: 5 }, (_, n) => answer(`b ${n}`, MOVE_BYTES_AT_ONCE / 2))
      await arrive('answers', small)
      for (const it of large) await arrive('answers', [it])
      const lengths: number[] = []
      for (let after: string | null = null; ;) {
        const { rows, last } = await target.readChunk('answers', after)
        lengths.push(rows.length)
        after = last
        if (last === null) break
      }
      assert.deepEqual(lengths, [MOVE_ROWS_AT_ONCE, 4, 2, 1, 0])
    })
  })

  test('takes a chunk once, and only where the move is', async () => {
    await begun(async (target, { arrive, at }) => {
      const from = at()
      await arrive('answers', [answer('a', 1)])
      const again = { table: 'answers', rows: [answer('b', 1)], from, to: from } as const
      await assert.rejects(target.put(again), /another process is moving the same vault/)
      assert.equal((await target.readChunk('answers', null)).rows.length, 1)
      const state = await target.state()
      assert.deepEqual(state, { holds: 'a move', id: MOVE, at: at(), finished: false })
    })
  })

  test('takes nothing of a chunk that does not fit, and can be given another', async () => {
    await begun(async (target, { arrive, at }) => {
      const from = at()
      const twice = arrive('answers', [answer('a', 1), answer('a', 2)])
      await assert.rejects(twice, /duplicate key/)
      await arrive('answers', [answer('a', 1)], from)
      assert.equal((await target.readChunk('answers', null)).rows.length, 1)
    })
  })

  test('is begun once, and in a database that holds nothing', async () => {
    await begun(async (target) => {
      const to = { table: 'installation', after: null } as const
      const more = { table: 'installation', rows: [], to } as const
      await assert.rejects(target.begin(OTHER_MOVE, more), /another program has begun to use it/)
    })
    const url = await freshDatabase()
    await (await PostgresStore.open({ url })).close()
    await query(url, "INSERT INTO installation VALUES (1, 'a', '')")
    await withVaultTarget(url, async (target) => {
      assert.deepEqual(await target.state(), { holds: 'a vault' })
      const to = { table: 'installation', after: null } as const
      const more = { table: 'installation', rows: [], to } as const
      await assert.rejects(target.begin(MOVE, more), /another program has begun to use it/)
      assert.deepEqual(await target.state(), { holds: 'a vault' })
    })
  })

  test('is no store until it is finished', async () => {
    await begun(async (target, { url }) => {
      await assert.rejects(PostgresStore.open({ url }), /a vault is on its way into it/)
      await (await PostgresStore.open({ url, unfinished: true })).close()
      await target.finish(MOVE)
      await (await PostgresStore.open({ url })).close()
    })
  })
})

const MOVE = '00000000-0000-4000-8000-000000000001'
const OTHER_MOVE = '00000000-0000-4000-8000-000000000002'
const TENANT = '00000000-0000-4000-8000-00000000000a'

interface StartedMove {
  readonly url: string
  /** Returns the current point of the move. */
  readonly at: () => MovePoint
  readonly arrive: (
    table: VaultTableName,
    rows: readonly VaultRow[],
    from?: MovePoint,
  ) => Promise<void>
}

/** Calls `work` with a new database in which a move has begun. */
async function begun(work: (target: PostgresVaultTarget, begun: StartedMove) => Promise<void>) {
  const url = await freshDatabase()
  await withVaultTarget(url, async (target) => {
    assert.deepEqual(await target.state(), { holds: 'nothing' })
    let point: MovePoint = { table: 'installation', after: '[1]' }
    const installation = rowOf('installation', { one: 1, root_key_check: Uint8Array.of(1) })
    await target.begin(MOVE, { table: 'installation', rows: [installation], to: point })
    let moved = 0
    const arrive: StartedMove['arrive'] = async (table, rows, from = point) => {
      const to = { table, after: String(++moved) }
      await target.put({ table, rows, from, to })
      point = to
    }
    await work(target, { url, at: () => point, arrive })
  })
}

/** Texts of any characters except lone surrogates, which no store keeps. */
const aText = fc.string({ unit: 'binary', maxLength: 8 })

const aToken = fc.record({
  name: fc.constantFrom('none', 'uuid', '', '\u0000', 'é\u0001s'),
  type: aText,
  containers: fc.oneof(
    aText.filter((it) => !it.startsWith('[')),
    fc.array(aText, { minLength: 2 }).map((it) => JSON.stringify(it)),
  ),
  metadata: fc.option(
    fc.dictionary(aText, aText).map((it) => JSON.stringify(it)),
    { freq: 3 },
  ),
  fingerprint: fc.option(aText),
  indexes: fc.option(fc.uint8Array({ maxLength: 40 })),
  expires_at: fc.option(fc.nat()),
  deduplicate: fc.boolean(),
})

/** Returns a row with the values in `given`, and valid ones for every other column. */
function rowOf(table: VaultTableName, given: Readonly<Record<string, VaultValue>>): VaultRow {
  const usual: Record<string, VaultValue> = {
    id: TENANT,
    name: 'a',
    text: 'a',
    containers: '/a/',
    metadata: null,
    bytes: Uint8Array.of(0, 255),
    number: 0,
    flag: false,
  }
  return Object.entries(VAULT_TABLES[table].columns).map(([column, kind]) =>
    column in given ? given[column]! : usual[kind]!,
  )
}

function answer(id: string, bytes: number): VaultRow {
  return rowOf('answers', { id, body: new Uint8Array(bytes) })
}

function internalId(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`
}

/** Compares bytes regardless of their class. */
function plain(rows: readonly VaultRow[]): unknown {
  return rows.map((row) => row.map((it) => (it instanceof Uint8Array ? [...it] : it)))
}

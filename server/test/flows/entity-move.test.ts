import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  withVaultTarget,
  type PostgresVaultTarget,
} from '../../src/adapters/storage/postgres/vault-target.ts'
import { ENTITIES, ENTITY_NAMES } from '../../src/ports/store/entities.ts'
import { VAULT_TABLES, type MovePoint } from '../../src/ports/vault-tables.ts'
import { openPatiently } from '../kit/postgres/patient-store.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import type { EntityModel } from '../model/entity-model.ts'
import { readersAgree } from '../model/entity-readers.ts'
import { holdEntitiesToModel, rowsAgree, rowsIn } from '../model/entity-run.ts'
import { openReadable } from '../model/entity-stores.ts'

const MOVE = '00000000-0000-4000-8000-000000000001'

test('rows of described entities that moved from SQLite to PostgreSQL are what a model says', async (t) => {
  const source = await openReadable('sqlite')
  t.after(() => source.close())
  const url = await freshDatabase()
  const moved: [EntityModel, readonly string[]][] = []
  await withVaultTarget(url, async (target) => {
    const { rows } = await source.reader.readChunk('installation', null)
    let point: MovePoint = { table: 'installation', after: '[1]' }
    await target.begin(MOVE, { table: 'installation', rows, to: point })
    const atEnd = async (model: EntityModel, tenantIds: readonly string[]) => {
      point = await bring(target, point, moved.length, tenantIds)
      await rowsAgree(target, model, tenantIds)
      moved.push([model.copy(), tenantIds])
    }
    await holdEntitiesToModel(source, { sequences: 10, atEnd })
    await target.finish(MOVE)
  })
  assert.ok(moved.length >= 10)
  const store = await openPatiently(url)
  t.after(() => store.close())
  for (const [model, tenantIds] of moved) await readersAgree(store, model, tenantIds)

  /** Brings the rows of the tenants, and returns the point of the move after them. */
  async function bring(
    target: PostgresVaultTarget,
    before: MovePoint,
    move: number,
    tenantIds: readonly string[],
  ): Promise<MovePoint> {
    let from = before
    for (const name of ENTITY_NAMES) {
      const { table } = ENTITIES[name]
      const at = Object.keys(VAULT_TABLES[table].columns).indexOf(VAULT_TABLES[table].key[0]!)
      const all = await rowsIn(source.reader, table)
      const rows = all.filter((row) => tenantIds.includes(String(row[at])))
      const to = { table, after: String(move) }
      await target.put({ table, rows, from, to })
      from = to
    }
    return from
  }
})

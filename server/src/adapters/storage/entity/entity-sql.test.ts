import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { renderEntitySql, type EntitySql, type EntityStatement } from './entity-sql.ts'

const DATABASES = ['sqlite', 'postgres'] as const

for (const database of DATABASES) {
  test(`${database}/entities.sql shows the SQL that is derived`, async () => {
    const { ENTITY_SQL } = (await import(`../${database}/entity-changes.ts`)) as {
      ENTITY_SQL: ReadonlyMap<EntityStatement, EntitySql>
    }
    const shown = readFileSync(new URL(`../${database}/entities.sql`, import.meta.url), 'utf8')
    assert.equal(shown, renderEntitySql(ENTITY_SQL), 'run `npm run sql`')
  })
}

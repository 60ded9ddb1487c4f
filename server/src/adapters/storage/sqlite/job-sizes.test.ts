/** The triggers that measure the jobs of a tenant. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import * as fc from '../../../../test/kit/fast-check.ts'
import { migrate } from './migrate.ts'

const STAGE = fc.constantFrom('run', 'deliver', 'keep', 'dead')
const CONTENT = fc.record({
  stage: STAGE,
  terms: fc.nat(9),
  result: fc.option(fc.nat(9)),
})
const ROW = { tenant: fc.constantFrom('a', 'b'), id: fc.nat(5) }
const CHANGE = fc.oneof(
  fc.record({ ...ROW, put: CONTENT }),
  fc.record({ ...ROW, put: fc.constant(null) }),
)

const KEPT = 'SELECT tenant, stage, count, bytes FROM job_sizes WHERE count <> 0 ORDER BY 1, 2'
const COUNTED = `SELECT tenant, stage, count(*) AS count,
    sum(length(terms) + ifnull(length(result), 0)) AS bytes
  FROM jobs GROUP BY tenant, stage ORDER BY 1, 2`

test('job_sizes agrees with the jobs after any changes', () => {
  fc.assert(
    fc.property(fc.array(CHANGE), (changes) => {
      const db = new DatabaseSync(':memory:')
      migrate(db)
      const put = db.prepare(`INSERT INTO jobs (tenant, id, stage, terms, result, reactor, claimed,
          lane, due_at, attempts, created_at, revision)
        VALUES (?, ?, ?, zeroblob(?), zeroblob(?), '', 0, '', 0, 0, 0, 0)
        ON CONFLICT DO UPDATE SET stage = excluded.stage, terms = excluded.terms, result = excluded.result`)
      const remove = db.prepare('DELETE FROM jobs WHERE tenant = ? AND id = ?')
      for (const { tenant, id, put: it } of changes) {
        if (it === null) remove.run(tenant, id)
        else put.run(tenant, id, it.stage, it.terms, it.result)
        assert.deepEqual(db.prepare(KEPT).all(), db.prepare(COUNTED).all())
      }
      db.close()
    }),
  )
})

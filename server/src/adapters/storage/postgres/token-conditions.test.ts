import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { freshDatabase, query } from '../../../../test/kit/postgres/test-database.ts'
import {
  NOW,
  TENANT,
  hash,
  insert,
  range,
  succeed,
  token,
} from '../../../ports/store-kit.contract.ts'
import { ANY_TOKEN, type TokenCondition } from '../../../ports/token-query.ts'
import { openPatiently } from '../../../../test/kit/postgres/patient-store.ts'
import { queryOf, type AskPostgres } from './session.ts'
import { tokenReader } from './token-reader.ts'

const [TERM, OTHER_TERM]: TokenCondition[] = [hash('a'), hash('b')].map((it) => ({
  kind: 'index',
  hash: it,
}))
const METADATA: TokenCondition = { kind: 'metadata', key: 'env', value: 'prod', exact: true }
const FINGERPRINT: TokenCondition = { kind: 'fingerprint', fingerprint: 'f' }

const CONDITIONS: Record<string, TokenCondition> = {
  'an index term': TERM!,
  'exact metadata': METADATA,
  'a fingerprint': FINGERPRINT,
  'either of two index terms': { kind: 'any', of: [TERM!, OTHER_TERM!] },
  'both of two index terms': { kind: 'all', of: [TERM!, METADATA] },
  'an index term and not another': { kind: 'all', of: [TERM!, { kind: 'not', of: OTHER_TERM! }] },
  'all without an index term': { kind: 'not', of: TERM! },
  everything: ANY_TOKEN,
}

describe('on PostgreSQL, with statistics from when the vault was new', () => {
  test('the work of a list grows with the tokens, not with tokens times matches', async (t) => {
    const url = await freshDatabase()
    const store = await openPatiently(url)
    t.after(() => store.close())
    const marked = {
      indexes: [hash('a')],
      metadata: { env: 'prod' },
      fingerprint: 'f',
    }
    await succeed(store, TENANT, [insert(token(TOKENS, marked))])
    await query(url, 'ANALYZE')
    const tokens = range(0, TOKENS).map((n) =>
      token(n, n % 4 === 0 ? marked : n % 4 === 1 ? { indexes: [hash('b')] } : {}),
    )
    await succeed(store, TENANT, [insert(...tokens)])

    const client = new pg.Client({ connectionString: url })
    await client.connect()
    t.after(() => client.end())
    for (const [name, where] of Object.entries(CONDITIONS)) {
      const rows: number[] = []
      const ask: AskPostgres = async (sql, values = []) => {
        const statement = queryOf(sql, values)
        const explain = { ...statement, text: `EXPLAIN (ANALYZE, FORMAT JSON) ${statement.text}` }
        const { rows: plans } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(explain)
        rows.push(rowsIn(plans[0]!['QUERY PLAN'][0]!.Plan))
        return (await client.query(statement)).rows
      }
      const reader = tokenReader(ask)
      const asked = { where, within: null, now: NOW }
      await reader.list(TENANT, asked, { page: 1, size: 10 })
      await reader.listAfter(TENANT, asked, { after: null, size: 10 })
      assert.equal(rows.length, 2)
      for (const it of rows) {
        assert.ok(it < 20 * TOKENS, `${name}: ${it} rows for ${TOKENS} tokens`)
      }
    }
  })
})

const TOKENS = 2_000

interface PlanNode {
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Counts the rows that all steps of a plan returned or rejected. */
function rowsIn(plan: PlanNode): number {
  const rejected =
    (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Join Filter'] ?? 0)
  const below = (plan.Plans ?? []).map(rowsIn).reduce((sum, it) => sum + it, 0)
  return (plan['Actual Rows'] + rejected) * plan['Actual Loops'] + below
}

/** Rows of token_indexes, and SQL that unpacks them from the column in which a row of tokens holds them: see token-content.ts. */
import { indexTermsOf } from '../../../ports/index-terms.ts'
import type { StoredToken } from '../../../ports/stored.ts'
import { insertInto } from './several-rows.ts'
import type { Statement } from './statements.ts'
import type { SqliteUnitOfWork } from './unit-of-work.ts'

const COLUMNS = { tenant: 'id', hash: 'bytes', serial: 'id' } as const

export const INDEX_TERM_TABLE = {
  insertIndexTerm: {
    sql: `${insertInto('token_indexes', COLUMNS)} ON CONFLICT DO NOTHING`,
    params: Object.values(COLUMNS),
    plain: true,
  },

  deleteIndexTerm: {
    sql: 'DELETE FROM token_indexes WHERE tenant = ? AND hash = ? AND serial = ?',
    params: Object.values(COLUMNS),
    plain: true,
  },
} as const satisfies Record<string, Statement>

/** Packs a step for each index term of a token. */
export function packIndexTerms(
  { packer, tenantId }: SqliteUnitOfWork,
  statement: keyof typeof INDEX_TERM_TABLE,
  token: StoredToken,
): void {
  for (const hash of indexTermsOf(token)) packer.step(statement, [tenantId, hash, token.internalId])
}

/** Every byte in order, so that the position of a byte is its value. */
const BYTES = `X'${Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join('')}'`
const LENGTH = `(instr(${BYTES}, substr(rest, 1, 1)) - 1)`

/** Returns the rows of token_indexes for `source`, whose rows are tenant, internal id and packed index terms. */
export function indexTermsIn(source: string): string {
  return `SELECT tenant, substr(rest, 2, ${LENGTH}), serial FROM (
    WITH RECURSIVE packed (tenant, serial, rest) AS (
      SELECT * FROM (${source})
      UNION ALL
      SELECT tenant, serial, substr(rest, 2 + ${LENGTH}) FROM packed
      WHERE length(rest) > 1 + ${LENGTH}
    )
    SELECT tenant, serial, rest FROM packed
  ) WHERE true`
}

/** Returns the statement that deletes the index terms of `source`, as for indexTermsIn(). */
export function deleteIndexTerms(source: string): string {
  return `DELETE FROM token_indexes WHERE (tenant, hash, serial) IN (${indexTermsIn(source)})`
}

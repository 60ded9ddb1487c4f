import type { Conflict } from '../../../ports/change.ts'
import { ACCESS_STATE_TABLE } from './access-state-changes.ts'
import { ANSWER_TABLE } from './answer-changes.ts'
import { AUDIT_LOG_TABLE } from './audit-log-changes.ts'
import { clearing } from './clearing.ts'
import { DUPLICATE_CHECK_TABLE } from './duplicate-checks.ts'
import { entityStatements } from './entity-changes.ts'
import { renewals } from './envelope-columns.ts'
import { INDEX_TERM_TABLE } from './index-term-rows.ts'
import { JOB_TABLE } from './job-changes.ts'
import { KEY_TABLE } from './key-changes.ts'
import { SESSION_TABLE } from './session-changes.ts'
import { STAGING_BATCH_TABLE } from './staging-batches.ts'
import { SWEEP_TABLE } from './sweep.ts'
import { TENANT_TABLE } from './tenant-changes.ts'
import { TOKEN_CHANGE_TABLE } from './token-changes.ts'
import { TOKEN_INSERT_TABLE } from './token-inserts.ts'
import { TRANSACTION_TABLE } from './transaction-changes.ts'

/**
 * Every statement that writes, by number, so that a step sent to the writer is a byte and its parameters. Each is
 * beside the function that packs its steps.
 *
 * `params` gives the type of each parameter; `refuses` says when a step is refused, if ever: if it changed nothing, found
 * something or found nothing; `conflict` is the conflict it met then, null if that cannot happen. `plain` steps are
 * almost never refused, so a commit of plain steps alone runs without a savepoint and, if one is refused, runs again
 * with one.
 */
export type Statement = WriteStatement & StatementOutcome

type StatementOutcome =
  | { readonly refuses?: undefined }
  | {
      readonly refuses: 'if-nothing-changed' | 'if-found' | 'if-absent'
      readonly conflict: Conflict['kind'] | null
    }

interface WriteStatement {
  readonly sql: string
  readonly params: readonly Param[]
  readonly plain?: true
  /**
   * Set if the statement may run for several rows at once, which usually differ only in the columns of these indexes.
   * Its `sql` has VALUES with one row of parameters. See SeveralRows.
   */
  readonly varyingColumns?: readonly number[]
}

/** An id is sent as 16 bytes if it is a uuid, as text otherwise. */
export type Param = 'id' | 'text' | 'bytes' | 'integer'

const TABLE = {
  ...TENANT_TABLE,
  ...entityStatements(),
  ...TOKEN_INSERT_TABLE,
  ...INDEX_TERM_TABLE,
  ...DUPLICATE_CHECK_TABLE,
  ...STAGING_BATCH_TABLE,
  ...ANSWER_TABLE,
  ...clearing(),
  beat: {
    sql: 'UPDATE pulse SET beats = beats + 1',
    params: [],
    refuses: 'if-nothing-changed',
    conflict: null,
    plain: true,
  },
  ...SESSION_TABLE,
  ...KEY_TABLE,
  ...renewals(),
  ...AUDIT_LOG_TABLE,
  ...ACCESS_STATE_TABLE,
  ...TOKEN_CHANGE_TABLE,
  ...TRANSACTION_TABLE,
  ...JOB_TABLE,
  ...SWEEP_TABLE,
} as const satisfies Record<string, Statement>

export type StatementName = keyof typeof TABLE

export const STATEMENTS: readonly Statement[] = Object.values(TABLE)

/** The number of each statement. */
export const STATEMENT = Object.fromEntries(
  Object.keys(TABLE).map((name, number) => [name, number]),
) as Readonly<Record<StatementName, number>>

/** Statements that insert a token; the last parameter is its staging batch or its transaction. */
export const INSERTS_TOKEN: ReadonlySet<number> = new Set([
  STATEMENT.insertToken,
  STATEMENT.insertNamedToken,
  STATEMENT.insertEnlistedToken,
])

/** The settings that our statements rely on, whatever the database, the role or a pooler would have them be. */

/** Timeouts that the database enforces, in milliseconds; 0 for none. */
export interface SessionTimeouts {
  /** For one statement. */
  readonly statement: number
  /** For a lock held by another transaction. */
  readonly lock: number
  /** For a pause within a transaction, whose locks block others. */
  readonly idleInTransaction: number
}

/** The startup parameter statement_timeout, in milliseconds: bounds what is sent before the session has its settings. */
export const FIRST_STATEMENT_MS_MAX = 20_000

/** For commands, whose statements may take long. */
export const NO_TIMEOUTS: SessionTimeouts = { statement: 0, lock: 0, idleInTransaction: 0 }

/** Values by name. Every user may set each of them; a database may know fewer. */
export type SessionSettings = Readonly<Record<string, string>>

/** Returns the settings of a session that is ours. */
export function sessionSettings(timeouts: SessionTimeouts): SessionSettings {
  return { ...requiredSettings(timeouts), ...OUTSIDE_TRANSACTIONS }
}

/** Returns those without which the service must not start. */
export function requiredSettings(timeouts: SessionTimeouts): SessionSettings {
  // A conflict is an error, and would end the session. A transaction cannot set it: its end comes first.
  return { ...transactionSettings(timeouts), exit_on_error: 'off' }
}

/** Returns those that a transaction can set as well. */
function transactionSettings(timeouts: SessionTimeouts): SessionSettings {
  return {
    statement_timeout: String(timeouts.statement),
    lock_timeout: String(timeouts.lock),
    idle_in_transaction_session_timeout: String(timeouts.idleInTransaction),
    // Since PostgreSQL 17. A long move or verification is one transaction.
    transaction_timeout: '0',
    // Above it, commit() would not hear of a commit that no standby confirmed.
    client_min_messages: 'warning',
    // With other values, text, bytes, nulls in arrays and backslashes would be read as something else.
    client_encoding: 'UTF8',
    bytea_output: 'hex',
    array_nulls: 'on',
    standard_conforming_strings: 'on',
    // Every query has an index. A named statement is planned once, and a sequential scan chosen while a new vault's table
    // is small would stay in use for minutes as it fills.
    enable_seqscan: 'off',
  }
}

/** Without effect within a transaction, which begins with the same. */
const OUTSIDE_TRANSACTIONS: SessionSettings = {
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  // The pool decides how long a connection may idle.
  idle_session_timeout: '0',
}

/** The characteristics of a transaction: it begins with them, whatever the defaults are. */
export type TransactionMode =
  | 'READ COMMITTED READ WRITE'
  | 'READ COMMITTED READ ONLY'
  | 'REPEATABLE READ READ ONLY'

/**
 * Applies settings to the session, if it is ours: if our startup parameter came through. A pooler that drops startup parameters,
 * or sends its own, may give the next statement another session of the database, and this one to another client. Returns a row per setting that
 * the database knows: whether it was applied, and whether the server is a standby. $1 are names, $2 values.
 */
export const SETTLE = `SELECT name, CASE WHEN ours THEN set_config(name, value, false) IS NOT NULL ELSE false END AS applied,
    pg_is_in_recovery() AS standby
  FROM unnest($1::text[], $2::text[]) AS setting (name, value),
    (SELECT EXISTS (SELECT 1 FROM pg_settings WHERE name = 'statement_timeout' AND source = 'client'
      AND reset_val = '${FIRST_STATEMENT_MS_MAX}') AS ours) AS probe
  WHERE current_setting(name, true) IS NOT NULL`

/** Returns the expressions that apply those of `settings` that a transaction can set, until its end. */
export function localSettings(settings: SessionSettings): string[] {
  const local = Object.keys(transactionSettings(NO_TIMEOUTS))
  return Object.entries(settings)
    .filter(([name]) => local.includes(name))
    .map(([name, value]) => `set_config('${name}', '${value}', true)`)
}

/** Checks that a database is fit to serve from. */
import { DatabaseError } from 'pg'
import { NoVault } from '../../../ports/no-vault.ts'
import type { PrimaryClient } from './primary-client.ts'
import { kept, queryOf, type AskPostgres, type CommitLevel, type Session } from './session.ts'
import type { SessionSettings } from './session-settings.ts'

/** What a commit survives by the settings of the database. */
export interface PostgresDurability {
  readonly commitLevel: CommitLevel
  /** Whether commits wait for a standby. */
  readonly replicated: boolean
}

/** The standbys that commits wait for; databases that have none may not know the setting. */
const STANDBYS = "coalesce(current_setting('synchronous_standby_names', true), '') AS standbys"

/** An acknowledged commit must survive a power cut, so COMMIT has to wait for the disk. */
export async function requireDurability(session: Session): Promise<PostgresDurability> {
  const [row] = await session.ask(
    `SELECT current_setting('synchronous_commit') AS level, ${STANDBYS}`,
  )
  const value = String(row!.level)
  if (value === 'on' || value === 'remote_apply') {
    return { commitLevel: value, replicated: row!.standbys !== '' }
  }
  throw new Error(
    `Cannot use the database: its synchronous_commit is ${value}, so it would acknowledge what a power ` +
      'cut undoes; set it to on',
  )
}

/** Reads once; if `replicated`, rejects when commits no longer wait for a standby: they would not survive the loss of the primary. */
export async function requireReadable(
  ask: AskPostgres,
  { replicated }: PostgresDurability,
): Promise<void> {
  const [row] = await ask(`SELECT ${STANDBYS} FROM pulse`)
  if (!replicated || row!.standbys !== '') return
  throw new Error(
    'synchronous_standby_names is empty, and named standbys at the start: an acknowledged write would not survive the ' +
      'loss of the primary; set it again, or restart the service to go on without standbys',
  )
}

/** Text must be read back as it was written. SQL_ASCII stores text as plain bytes. */
export async function requireFidelity(ask: AskPostgres): Promise<void> {
  const [row] = await ask('SHOW server_encoding')
  const value = String(row!.server_encoding)
  if (value === 'UTF8' || value === 'SQL_ASCII') return
  throw new Error(
    `Cannot use the database: its server_encoding is ${value}, so it has no place for every text; make it anew with UTF8`,
  )
}

/** Returns the settings that do not hold for a statement of `ask`, each with the value that does. */
export async function settingsUnheld(
  ask: AskPostgres,
  settings: SessionSettings,
): Promise<string[]> {
  const rows = await ask(
    'SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[]) ORDER BY name',
    [Object.keys(settings)],
  )
  const unheld = rows.filter(
    ({ name, setting }) => settings[String(name)]!.toLowerCase() !== String(setting).toLowerCase(),
  )
  return unheld.map(({ name, setting }) => `${String(name)} is ${String(setting)}`)
}

/** Whether a setting in the answer of settingsUnheld() is one that no statement in a pooler's session can change. */
export function isOwners(unheld: string): boolean {
  return unheld.startsWith('exit_on_error ')
}

/** Without the timeouts, a statement could wait forever; without the others, values could change their meaning. */
export async function requireSettings(ask: AskPostgres, settings: SessionSettings): Promise<void> {
  const unheld = await settingsUnheld(ask, settings)
  if (unheld.length === 0) return
  if (unheld.every(isOwners)) {
    throw new Error(
      `Cannot use the database: ${unheld.join(', ')}, which only the owner of a session can change, and that is a pooler: ` +
        'set it for the user (ALTER ROLE ... SET exit_on_error = off), and have the pooler reconnect',
    )
  }
  throw new Error(
    `Cannot use the database: ${unheld.join(', ')}, although the service sets that: a pooler gives its statements other ` +
      'sessions; connect without it, have it drop the startup parameter statement_timeout, or set these for the user (ALTER ROLE)',
  )
}

/** Named statements are prepared once, so that a pooler that shares sessions has to prepare them in each. */
const NAMED = kept('named', 'SELECT 1')

/**
 * Whether named statements work on these three connections. Runs one on two of them in turn, twice, and then on the third: a pooler
 * that shares sessions and does not track names gets to where the name is unknown or taken, in whatever order it gives sessions out.
 */
export async function areNamesTracked(
  clients: readonly [PrimaryClient, PrimaryClient, PrimaryClient],
): Promise<boolean> {
  const [one, other, third] = clients
  try {
    for (const it of [one, other, one, other, third]) {
      await it.runAlone(queryOf(NAMED, []), 'READ COMMITTED READ ONLY')
    }
    return true
  } catch (error) {
    if (error instanceof DatabaseError && MISNAMED.has(error.code ?? '')) return false
    throw error
  }
}

/** Unknown, and already taken. Source: postgresql.org, appendix "PostgreSQL Error Codes". */
const MISNAMED: ReadonlySet<string> = new Set(['26000', '42P05'])

/** Throws NoVault unless a vault was set up in the database. Must run before the first migration, which creates tables. */
export async function requireVault(ask: AskPostgres): Promise<void> {
  const [table] = await ask("SELECT to_regclass('installation') IS NOT NULL AS there")
  if (table!.there === true && (await ask('SELECT 1 FROM installation')).length > 0) return
  const [found] = await ask('SELECT current_database() AS name, current_schema() AS schema')
  const { name, schema } = found!
  throw new NoVault(
    `Cannot open the database: there is no vault in ${String(name)}, schema ${String(schema)}`,
  )
}

/** Part of a vault looks like a whole one: rows that have not arrived yet would be reported as absent. */
export async function refuseUnfinishedMove(ask: AskPostgres): Promise<void> {
  // A reader may meet a database of an older program, which has no such table and cannot hold a move.
  const [table] = await ask("SELECT to_regclass('moving') IS NOT NULL AS there")
  if (table!.there !== true) return
  const moving = await ask('SELECT 1 FROM moving WHERE NOT finished')
  if (moving.length === 0) return
  throw new Error(
    'Cannot open the database: a vault is on its way into it, and not all of it is there: ' +
      'run symbolon migrate again to finish',
  )
}

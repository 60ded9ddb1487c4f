/** Checks that a database is fit to serve from. */
import { NoVault } from '../../../ports/no-vault.ts'
import type { AskPostgres, CommitLevel, Session } from './session.ts'

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
const FAITHFUL = [
  {
    setting: 'server_encoding',
    allowed: ['UTF8', 'SQL_ASCII'],
    otherwise: 'so it has no place for every text; make it anew with UTF8',
  },
  {
    setting: 'bytea_output',
    allowed: ['hex'],
    otherwise: 'so what is sealed would be read as something else; set it to hex',
  },
]

export async function requireFidelity(ask: AskPostgres): Promise<void> {
  for (const { setting, allowed, otherwise } of FAITHFUL) {
    const [row] = await ask(`SHOW ${setting}`)
    const value = String(row![setting])
    if (allowed.includes(value)) continue
    throw new Error(`Cannot use the database: its ${setting} is ${value}, ${otherwise}`)
  }
}

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

import {
  VAULT_TABLE_NAMES,
  type MovePoint,
  type VaultReader,
  type VaultRow,
  type VaultChunk,
  type VaultTableName,
} from '../../../ports/vault-tables.ts'
import { columnsOf, rowsFrom } from './several-rows.ts'
import { connectionSettings } from './connection-settings.ts'
import { atLeisure } from './connection.ts'
import { migrate } from './migrate.ts'
import { requireDurability, requireFidelity } from './requirements.ts'
import { troubleOf, type Session } from './session.ts'
import { columnsHere, derivedColumns, packRow, tableHere } from './vault-columns.ts'
import { vaultReader } from './vault-reader.ts'

/** State of the target before a move: empty, a vault, or the part of a vault that a move has brought. */
export type TargetState =
  | { readonly holds: 'nothing' | 'a vault' }
  | {
      readonly holds: 'a move'
      readonly id: string
      readonly at: MovePoint
      readonly finished: boolean
    }

/** A chunk of a table, and the points of the move before and after it. */
export interface Arrival {
  readonly table: VaultTableName
  readonly rows: readonly VaultRow[]
  readonly from: MovePoint
  readonly to: MovePoint
}

/**
 * Calls `work` with the database at `url` as the target of a move, its tables created if needed.
 *
 * Rejects, and changes nothing, when the database has tables of another program or is not durable.
 */
export async function withVaultTarget<Result>(
  url: string,
  work: (target: PostgresVaultTarget) => Promise<Result>,
): Promise<Result> {
  const settings = { ...connectionSettings(url), keepAlive: true }
  return await atLeisure(settings, async (session) => {
    await requireDurability(session)
    await requireFidelity(session.ask)
    await refuseStrangers(session)
    await migrate(session)
    return await work(new PostgresVaultTarget(session))
  })
}

/**
 * The database that a vault moves into. Each chunk arrives in one transaction with the progress of the move, so an
 * interrupted move continues where it stopped.
 */
export class PostgresVaultTarget implements VaultReader {
  readonly #session: Session
  readonly #reader: VaultReader

  constructor(session: Session) {
    this.#session = session
    this.#reader = vaultReader(session.ask)
  }

  async state(): Promise<TargetState> {
    return await saying(async () => {
      const [moving] = await this.#session.ask('SELECT * FROM moving')
      const installed = await this.#session.ask('SELECT 1 FROM installation')
      if (moving === undefined) return { holds: installed.length === 0 ? 'nothing' : 'a vault' }
      return {
        holds: 'a move',
        id: String(moving.id),
        at: { table: tableNamed(moving.at_table), after: moving.after_row as string | null },
        finished: moving.finished === true,
      }
    })
  }

  /**
   * Begins the move `id` in an empty database with the vault's installation row, so that another server cannot set up a
   * vault there from now on. Rejects when another process was first.
   */
  async begin(id: string, { table, rows, to }: Omit<Arrival, 'from'>): Promise<void> {
    await this.#transaction(async () => {
      const begun = await this.#session.run(
        `INSERT INTO moving (one, id, at_table, after_row, finished) VALUES (1, $1, $2, $3, false)
         ON CONFLICT DO NOTHING`,
        [id, to.table, to.after],
      )
      if (begun === 0 || (await this.#session.ask('SELECT 1 FROM installation')).length > 0) {
        throw new MoveRefusal('Cannot move into the database: another program has begun to use it')
      }
      await this.#insert(table, rows)
    })
  }

  /** Writes a chunk. Rejects, and changes nothing, unless the move is at the point `from`. */
  async put({ table, rows, from, to }: Arrival): Promise<void> {
    await this.#transaction(async () => {
      const moved = await this.#session.run(
        `UPDATE moving SET at_table = $3, after_row = $4
         WHERE at_table = $1 AND after_row IS NOT DISTINCT FROM $2 AND NOT finished`,
        [from.table, from.after, to.table, to.after],
      )
      if (moved === 0) {
        throw new MoveRefusal(
          'Cannot go on: another process is moving the same vault into the database',
        )
      }
      await this.#insert(table, rows)
    })
  }

  async readChunk(table: VaultTableName, after: string | null): Promise<VaultChunk> {
    return await saying(() => this.#reader.readChunk(table, after))
  }

  /**
   * Completes the move, so that servers may use the database. Runs ANALYZE first, because without statistics the first
   * queries would be slow.
   */
  async finish(id: string): Promise<void> {
    await saying(() => this.#session.run('ANALYZE'))
    await this.#transaction(async () => {
      await this.#session.run('UPDATE moving SET finished = true WHERE id = $1', [id])
    })
  }

  async #insert(table: VaultTableName, rows: readonly VaultRow[]): Promise<void> {
    if (rows.length === 0) return
    const derived = derivedColumns(table)
    const columns = { ...columnsHere(table), ...derived.columns }
    const names = Object.keys(columns).join(', ')
    const values = rows.map((it) => [...packRow(table, it), ...derived.of(it)])
    await this.#session.run(
      `INSERT INTO ${tableHere(table)} (${names}) SELECT ${names} FROM ${rowsFrom(columns, 'rows')}`,
      columnsOf(columns, values),
    )
  }

  async #transaction(work: () => Promise<void>): Promise<void> {
    await saying(async () => {
      await this.#session.begin()
      try {
        await work()
        await this.#session.commit()
      } catch (error) {
        // A lost connection needs no rollback.
        await this.#session.rollback().catch(() => {})
        throw error
      }
    })
  }
}

/** Refuses a database that holds another program's tables. */
async function refuseStrangers(session: Session): Promise<void> {
  const tables = (
    await session.ask(
      'SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1',
    )
  ).map((it) => String(it.table_name))
  if (tables.length === 0 || tables.includes('schema_version')) return
  throw new Error(
    `Cannot move into the database: it has a table ${tables[0]} that is not ours; name an empty one`,
  )
}

/** Returns the table of that name; throws when this program does not know it. */
function tableNamed(name: unknown): VaultTableName {
  const table = VAULT_TABLE_NAMES.find((it) => it === name)
  if (table === undefined) throw new MoveRefusal(`Cannot go on: the move is at ${String(name)}`)
  return table
}

/** An error to pass on as it is: the database is not at fault. */
class MoveRefusal extends Error {}

/** Runs `work`, and tells the operator how to continue when the connection is lost. */
async function saying<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof MoveRefusal || troubleOf(error) === 'own') throw error
    throw new Error(
      'The connection to the database was lost; run the same command again: it continues where it stopped',
      { cause: error },
    )
  }
}

/** What a database has to be like before anybody serves from it. */
import type { AskPostgres, Session } from './session.ts'

/** What is acknowledged has to survive a power cut, so the database has to wait for its disk. */
export async function requireDurability(session: Session): Promise<void> {
  const [row] = await session.ask('SHOW synchronous_commit')
  const value = String(row!.synchronous_commit)
  if (value === 'on' || value === 'remote_apply') return
  throw new Error(
    `Cannot use the database: its synchronous_commit is ${value}, so it would acknowledge what a power ` +
      'cut undoes; set it to on',
  )
}

/** What is read has to be what was written. SQL_ASCII takes texts as the bytes that they are. */
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

/** Half a vault looks like a whole one: what has not arrived yet would be told to be absent. */
export async function refuseUnfinishedMove(ask: AskPostgres): Promise<void> {
  // Whoever only reads may find a database of an older program, which nothing was moved to.
  const [table] = await ask("SELECT to_regclass('moving') IS NOT NULL AS there")
  if (table!.there !== true) return
  const moving = await ask('SELECT 1 FROM moving WHERE NOT finished')
  if (moving.length === 0) return
  throw new Error(
    'Cannot open the database: a vault is on its way into it, and not all of it is there: ' +
      'run symbolon migrate again to finish',
  )
}

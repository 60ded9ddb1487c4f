import { checkRootKey } from '../access/root-key-check.ts'
import { LocalKeyring } from '../adapters/local-keyring/local-keyring.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import type { PostgresVaultTarget } from '../adapters/storage/postgres/vault-target.ts'
import { readMoveMark, writeMoveMark } from '../adapters/storage/sqlite/move-mark.ts'
import { openVaultSource, type SqliteVaultSource } from '../adapters/storage/sqlite/vault-source.ts'
import { SystemClock } from '../adapters/system/system-clock.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { ID_RANDOM_BYTES, idOf } from '../base/id.ts'
import { ConfigError, readConfig } from '../config.ts'
import { verifyValues } from '../integrity/verify-values.ts'
import { tokenCountOf } from '../key-rotation/token-count.ts'
import { unfinishedRotations } from '../key-rotation/rotate-data-key.ts'
import type { MovePoint } from '../ports/vault-tables.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { bringOver, compareVaults } from './move-vault.ts'
import { openRootKeys } from './open-root-keys.ts'
import { nameOf, sentenceOf } from './verify.ts'

/**
 * `symbolon migrate`: moves the whole vault from the data folder into an empty PostgreSQL database.
 *
 * The service must not run meanwhile. If killed, it continues where it was when run again. At the end both vaults are read
 * and compared, and only then can the service run on the database, and no longer on the folder. Decision 0040.
 */
export const migrateCommand: RunCommand = async ({ flags, out }) => {
  const config = readConfig(flags)
  requireDirection(flags)
  const { dataDir: folder, databaseUrl: url } = config
  if (url === null) {
    throw new ConfigError('SYMBOLON_DATABASE_URL is unset: set it to the database to move to.')
  }
  const source = openVaultSource(folder)
  try {
    const installed = await source.tenants.rootKeyCheck()
    if (installed === null) throw new Error(`Cannot move ${folder}: nothing is set up in it`)
    const rootKeys = await openRootKeys(config, installed, { create: false })
    await checkRootKey(source, rootKeys)
    await refuseRotation(source)
    const { withVaultTarget } = await import('../adapters/storage/postgres/vault-target.ts')
    return await withVaultTarget(url, async (target) => {
      const move = await beginOrGoOn(folder, source, target)
      if (move === null) {
        out('The vault was moved to this database before; nothing was changed.')
        return 0
      }
      await bringOver(source, target, move.at, ({ table, left }) => out(`${table}: ${left} left`))
      await requireEqual(source, target, out)
      await tryOut(url, rootKeys, out)
      // In this order, so that at no moment both could be served.
      writeMoveMark(folder, { id: move.id, finished: true })
      await target.finish(move.id)
      out(
        'Everything is there, and equal. Start the service with SYMBOLON_DATABASE_URL from now on;',
      )
      out(`it will not start on ${folder} any more.`)
      return 0
    })
  } finally {
    source.close()
  }
}

/** Only one direction exists so far; requiring it leaves room for others. */
function requireDirection(flags: CommandInput['flags']): void {
  for (const [flag, only] of [
    ['from', 'sqlite'],
    ['to', 'postgres'],
  ] as const) {
    const given = flags[flag]
    if (given === only) continue
    const said = given === undefined ? `--${flag} is missing` : `--${flag} is '${given}'`
    throw new ConfigError(`${said}, but must be ${only}.`)
  }
}

/** A rotation begun in the folder must finish there: otherwise both versions of a key would be moved. */
async function refuseRotation({ tenants }: SqliteVaultSource): Promise<void> {
  const [tenant] = await unfinishedRotations({ store: { tenants } })
  if (tenant === undefined) return
  throw new Error(
    `Cannot move the vault: the data key of tenant ${tenant} is being replaced; start the service and wait for ` +
      'key_rotated in its log',
  )
}

interface MoveInProgress {
  readonly id: string
  readonly at: MovePoint
}

/** Returns null if everything is done. */
async function beginOrGoOn(
  folder: string,
  source: SqliteVaultSource,
  target: PostgresVaultTarget,
): Promise<MoveInProgress | null> {
  const mark = readMoveMark(folder)
  const state = await target.state()
  if (state.holds === 'a move' && state.id === mark?.id) {
    return state.finished ? null : { id: state.id, at: state.at }
  }
  if (state.holds === 'a vault' || (state.holds === 'a move' && state.finished)) {
    throw new Error('Cannot move into the database: it holds a vault already; name an empty one')
  }
  if (state.holds === 'a move') {
    throw new Error(
      'Cannot move into the database: it holds part of another vault, or of an abandoned move; ' +
        'name an empty one',
    )
  }
  if (mark?.finished === true) {
    throw new Error(
      `Cannot move ${folder}: it was moved to another database already; remove symbolon.moved in it if you ` +
        'have abandoned that database',
    )
  }
  return await begin(folder, source, target)
}

/** The mark comes first: nothing may change in the folder once the first row is copied. */
async function begin(
  folder: string,
  source: SqliteVaultSource,
  target: PostgresVaultTarget,
): Promise<MoveInProgress> {
  const id = idOf(new SystemClock().now(), new SystemRandom().bytes(ID_RANDOM_BYTES))
  writeMoveMark(folder, { id, finished: false })
  const table = 'installation'
  const { rows, last } = await source.readChunk(table, null)
  const at = { table, after: last } as const
  await target.begin(id, { table, rows, to: at })
  return { id, at }
}

async function requireEqual(
  source: SqliteVaultSource,
  target: PostgresVaultTarget,
  out: CommandInput['out'],
): Promise<void> {
  const unequal: string[] = []
  for await (const { table, rows, sum, equal } of compareVaults(target, source)) {
    const verdict = equal ? 'equal' : 'NOT EQUAL'
    out(`${table.padEnd(18)}${String(rows).padStart(12)} rows  ${sum.slice(0, 16)}  ${verdict}`)
    if (!equal) unequal.push(table)
  }
  if (unequal.length === 0) return
  throw new Error(
    `The database differs from the folder (${unequal.join(', ')}), so another program has written to it; empty it ` +
      'and start over',
  )
}

/** Opens the moved vault as the service would. */
async function tryOut(url: string, rootKeys: RootKeys, out: CommandInput['out']): Promise<void> {
  const { PostgresStore } = await import('../adapters/storage/postgres/store.ts')
  const store = await PostgresStore.open({ url, unfinished: true })
  try {
    const keyring = new LocalKeyring(rootKeys, new SystemRandom(), (id) => store.tenants.keys(id))
    const world = { clock: new SystemClock(), keyring, store }
    const tenantIds = await store.tenants.ids()
    let [values, tokens] = [0, 0]
    for (const id of tenantIds) tokens += await tokenCountOf(world, id)
    for await (const step of verifyValues(world, { depth: 'samples' })) {
      values += step.values
      for (const it of step.damaged) out(sentenceOf(nameOf(it)))
    }
    out(`${tenantIds.length} tenants, ${tokens} tokens, ${values} values decrypted`)
  } finally {
    await store.close()
  }
}

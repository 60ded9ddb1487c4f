import { checkRootKey } from '../access/root-key-check.ts'
import { requireDatabase } from '../adapters/storage/sqlite/data-folder.ts'
import { giveOrder } from '../adapters/system/control-socket.ts'
import { isUuid } from '../base/id.ts'
import { ConfigError, readConfig, type Config } from '../config.ts'
import { checkpointAtEnd, upgradeAndSay } from './audit-upgrade.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { openWorld } from './open-world.ts'
import { executeProtectionOrder, type ProtectionOrder } from './protection-order.ts'

/**
 * `symbolon configuration protect`: marks a stored string in the configuration of a reactor or a proxy as secret.
 *
 * A service that runs on the data folder does it while it serves; if none runs, this process does.
 */
export const configurationProtect: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  if (config.databaseUrl === null) requireDatabase(config.dataDir)
  const order = orderOf(flags)
  const marked = (await protectThere(config, order)) ?? (await protectHere(config, order, err))
  const { entity, id, key } = order.protect
  out(`${entity} ${id}: "${key}" ${marked ? 'is a secret now' : 'was a secret already'}`)
  return 0
}

function orderOf(flags: CommandInput['flags']): ProtectionOrder {
  const { reactor, proxy, key, tenant = null } = flags
  if ((reactor === undefined) === (proxy === undefined)) {
    throw new ConfigError('Pass --reactor ID or --proxy ID.')
  }
  const entity = reactor === undefined ? 'proxy' : 'reactor'
  const id = (reactor ?? proxy)!.toLowerCase()
  if (!isUuid(id))
    throw new ConfigError(`--${entity} is '${id}', but must be the id of a ${entity}.`)
  if (key === undefined) {
    throw new ConfigError('--key is missing: the name of a value in the configuration.')
  }
  return { protect: { tenant, entity, id, key } }
}

/** Has a running service mark it. Returns null if none runs. */
async function protectThere({ dataDir }: Config, order: ProtectionOrder): Promise<boolean | null> {
  let marked: boolean | null = null
  await giveOrder(dataDir, order, (news) => {
    marked = news['marked'] === true
  })
  return marked
}

async function protectHere(
  config: Config,
  order: ProtectionOrder,
  err: CommandInput['err'],
): Promise<boolean> {
  const { world, keyProvider, close } = await openWorld(
    { ...config, logLevel: 'silent' },
    { onFault: () => {}, existing: true },
  )
  try {
    await checkRootKey(world.store, keyProvider)
    await upgradeAndSay(world, keyProvider, err)
    return await executeProtectionOrder(world, order)
  } finally {
    await checkpointAtEnd(world)
    await close()
  }
}

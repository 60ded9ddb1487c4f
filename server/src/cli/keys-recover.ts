import { checkRootKey } from '../access/root-key-check.ts'
import {
  recoverManagementKey,
  type RecoveredKey,
  type RecoveryRequest,
} from '../access/applications/recover-management-key.ts'
import { requireDatabase } from '../adapters/storage/sqlite/data-folder.ts'
import type { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import { giveOrder } from '../adapters/system/control-socket.ts'
import { SystemRandom } from '../adapters/system/system-random.ts'
import { readConfig, type Config } from '../config.ts'
import { checkpointAtEnd, upgradeAndSay } from './audit-upgrade.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { openRootKeys } from './open-root-keys.ts'
import { openWorld } from './open-world.ts'
import { printKey } from './print-key.ts'
import {
  CHALLENGE_ORDER,
  openRecovery,
  proveRecovery,
  type SealedRecovery,
} from './recovery-order.ts'

/**
 * `symbolon keys recover`: creates a management key for a tenant that has lost or deleted its own.
 *
 * Requires the root key. If a service runs on the data folder, it creates the key; otherwise this process does, and the next
 * service to run logs it.
 */
export const keysRecover: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  if (config.databaseUrl === null) requireDatabase(config.dataDir)
  const request = { tenant: flags['tenant'] ?? null, applicationId: flags['application'] ?? null }
  // Opened first: without the root key, no order is sent to the service.
  const rootKeys = await openRootKeys(config, null, { create: false })
  const made = await recoverThere(config, request, rootKeys)
  printKey({ flags, out }, made ?? (await recoverHere(config, request, err)))
  return 0
}

/** Has a running service create the key. Returns null if none runs. */
async function recoverThere(
  { dataDir }: Config,
  request: RecoveryRequest,
  rootKeys: RootKeys,
): Promise<RecoveredKey | null> {
  let challenge = ''
  const served = await giveOrder(dataDir, CHALLENGE_ORDER, (news) => {
    challenge = String(news['challenge'])
  })
  if (!served) return null
  const proven = await proveRecovery(request, challenge, rootKeys, new SystemRandom())
  let made: RecoveredKey | null = null
  await giveOrder(dataDir, proven.order, (news) => {
    made = openRecovery(proven, news['recovered'] as SealedRecovery)
  })
  return made
}

async function recoverHere(
  config: Config,
  request: RecoveryRequest,
  err: CommandInput['err'],
): Promise<RecoveredKey> {
  const { world, keyProvider, close } = await openWorld(
    { ...config, logLevel: 'silent' },
    { onFault: () => {}, existing: true },
  )
  try {
    await checkRootKey(world.store, keyProvider)
    await upgradeAndSay(world, keyProvider, err)
    return await recoverManagementKey(world, keyProvider, request)
  } finally {
    await checkpointAtEnd(world)
    await close()
  }
}

import { checkRootKey } from '../access/root-key-check.ts'
import { setUp } from '../access/applications/set-up.ts'
import { CheckpointAnnouncer } from '../audit/checkpoint-announcer.ts'
import { PLANS } from '../base/access.ts'
import { ConfigError, readConfig } from '../config.ts'
import { upgradeAndSay } from './audit-upgrade.ts'
import { checkCheckpointFile, openCheckpointFile } from './checkpoint-file.ts'
import type { RunCommand } from './command.ts'
import { openWorld } from './open-world.ts'
import { printKey } from './print-key.ts'

export const DEFAULT_TENANT_NAME = 'default'

/** `symbolon init`: creates a tenant and prints its first management key, without listening. */
export const init: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  const name = flags['name'] ?? DEFAULT_TENANT_NAME
  const plan = PLANS.find((it) => it === (flags['plan'] ?? PLANS[0]))
  if (plan === undefined) {
    throw new ConfigError(`--plan is '${flags['plan']}', but must be one of ${PLANS.join(', ')}.`)
  }
  await checkCheckpointFile(config)
  const { world, keyProvider, close } = await openWorld(
    { ...config, logLevel: 'silent' },
    { onFault: () => {} },
  )
  try {
    const checkpointFile = await openCheckpointFile(config)
    await checkRootKey(world.store, keyProvider)
    await upgradeAndSay(world, keyProvider, err)
    const made = await setUp(world, keyProvider, { name, plan })
    printKey({ flags, out }, made)
    await new CheckpointAnnouncer(world, checkpointFile).announceCurrent([made.tenantId])
    return 0
  } finally {
    await close()
  }
}

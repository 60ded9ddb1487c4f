import { checkRootKey } from '../access/root-key-check.ts'
import { setUp } from '../access/set-up.ts'
import { PLANS } from '../base/access.ts'
import { ConfigError, readConfig } from '../config.ts'
import { upgradeAndSay } from './audit-upgrade.ts'
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
  const { world, keyProvider, close } = await openWorld(
    { ...config, logLevel: 'silent' },
    { onFault: () => {} },
  )
  try {
    await checkRootKey(world.store, keyProvider)
    await upgradeAndSay(world, keyProvider, err)
    const made = await setUp(world, keyProvider, { name, plan })
    printKey({ flags, out }, made)
    return 0
  } finally {
    await close()
  }
}

import { resolve } from 'node:path'
import { checkRootKey } from '../access/root-key-check.ts'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { hasRootKey } from '../adapters/local-keyring/root-key-file.ts'
import { requireDatabase } from '../adapters/storage/sqlite/data-folder.ts'
import { giveOrder } from '../adapters/system/control-socket.ts'
import { isUuid } from '../base/id.ts'
import { ConfigError, readConfig, SettingError, type Config } from '../config.ts'
import { checkpointAtEnd, upgradeAndSay } from './audit-upgrade.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { openWorld } from './open-world.ts'
import { executeRotationOrder, type RotationNews, type RotationOrder } from './rotation-order.ts'
import { Rotations } from './rotations.ts'

/**
 * `symbolon keys rotate`: rotates data keys, or the root key with `--root`.
 *
 * A service that runs on the data folder does it while it serves; if none runs, this process does. An interrupted rotation
 * continues at the next start of the service, or the next call of this command.
 */
export const keysRotate: RunCommand = async ({ flags, out, err }) => {
  const config = readConfig(flags)
  // A misspelt folder must not create a vault, nor a root key for it.
  if (config.databaseUrl === null) requireDatabase(config.dataDir)
  const order = await orderOf(config, flags)
  const say = speaker(out)
  const served = await giveOrder(config.dataDir, order, (news) => say(news as RotationNews))
  if (!served) await rotateHere(config, order, { say, err })
  if (order.rotate === 'root') {
    const file = resolve(config.rootKeyNextFile!)
    out('A start with the present settings still works. When it suits you, set for each server')
    out(`SYMBOLON_ROOT_KEY_FILE=${file}, unset SYMBOLON_ROOT_KEY_NEXT_FILE, and restart it.`)
    out('Keep the old key for as long as you keep backups that were made with it.')
  }
  return 0
}

async function orderOf(config: Config, flags: CommandInput['flags']): Promise<RotationOrder> {
  const tenant = flags['tenant']
  if (tenant !== undefined && !isUuid(tenant)) {
    throw new ConfigError(`--tenant is '${tenant}', but must be the id of a tenant.`)
  }
  if (flags['root'] === undefined) return { rotate: 'tenants', which: tenant ?? null }
  if (tenant !== undefined) throw new ConfigError('--root and --tenant exclude each other.')
  return { rotate: 'root', which: await nextRootKeyId(config) }
}

/** Never creates the key: every server must hold it first. */
async function nextRootKeyId({ rootKeyNextFile: file }: Config): Promise<string> {
  if (file === null) {
    throw new ConfigError(
      '--root requires SYMBOLON_ROOT_KEY_NEXT_FILE, the path of the new root key: create it with ' +
        '`symbolon keys create-root --to FILE`, and restart each server with that setting.',
    )
  }
  if (!(await hasRootKey(file))) {
    throw new SettingError(
      'SYMBOLON_ROOT_KEY_NEXT_FILE',
      `is '${file}', but there is no such file: create the new root key with \`symbolon keys create-root --to FILE\`, ` +
        'and restart each server with that setting.',
    )
  }
  return (await FileKeyProvider.open(file, { createIfMissing: false })).id
}

async function rotateHere(
  config: Config,
  order: RotationOrder,
  { say, err }: { readonly say: (news: RotationNews) => void; readonly err: CommandInput['err'] },
): Promise<void> {
  const opened = await openWorld(
    { ...config, logLevel: 'silent' },
    { onFault: () => {}, existing: true },
  )
  const rotations = new Rotations(opened.world, opened.keyMaker)
  try {
    await checkRootKey(opened.world.store, opened.keyProvider)
    await upgradeAndSay(opened.world, opened.keyProvider, err)
    await executeRotationOrder(opened, rotations, order, say)
  } finally {
    await rotations.stop()
    await checkpointAtEnd(opened.world)
    await opened.close()
  }
}

/** Prints important events at once, and progress now and then. */
function speaker(out: CommandInput['out']): (news: RotationNews) => void {
  const said = new Map<string, string>()
  return (news) => {
    if ('rootKey' in news) {
      out(`root key ${news.rootKey}: in use, ${news.wrapped} keys wrapped anew`)
    } else if ('rotated' in news) {
      out(`tenant ${news.tenantId}: done, 0 left, older keys destroyed`)
    } else {
      const { tenantId, version, left } = news
      const line = `tenant ${tenantId}: data key ${version}, ${roughly(left)} left`
      if (line !== said.get(tenantId)) out(line)
      said.set(tenantId, line)
    }
  }
}

/** Rounds to two digits, to bound the number of progress lines. */
function roughly(count: number): number {
  const unit = 10 ** Math.max(0, String(count).length - 2)
  return Math.ceil(count / unit) * unit
}

import { resolve } from 'node:path'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { createRootKey } from '../adapters/local-keyring/root-key-file.ts'
import { ConfigError } from '../config.ts'
import type { RunCommand } from './command.ts'

/**
 * `symbolon keys create-root`: writes a new root key to a file. Nothing uses it yet.
 *
 * A separate step, so that the key can be copied, and given to every server, before any data depends on it.
 */
export const keysCreateRoot: RunCommand = async ({ flags, out }) => {
  const to = flags['to']
  if (to === undefined) {
    throw new ConfigError('--to is missing: the file to write the new root key to.')
  }
  if (!(await createRootKey(to))) {
    throw new ConfigError(`--to is '${to}', which already exists and is not overwritten.`)
  }
  const { id } = await FileKeyProvider.open(to, { createIfMissing: false })
  const file = resolve(to)
  out(`root key ${id}: written to ${file}, not in use yet`)
  out('To replace the root key of a vault with it:')
  out('  1. Keep a copy of the file, apart from the data and its backups.')
  out(`  2. Set SYMBOLON_ROOT_KEY_NEXT_FILE=${file} for each server, and restart each.`)
  out('  3. Run symbolon keys rotate --root, with the same settings.')
  return 0
}

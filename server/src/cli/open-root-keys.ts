import { join } from 'node:path'
import { FileKeyProvider } from '../adapters/local-keyring/file-key-provider.ts'
import { hasRootKey } from '../adapters/local-keyring/root-key-file.ts'
import { RootKeys } from '../adapters/local-keyring/root-keys.ts'
import type { Config } from '../config.ts'
import type { RootKeyCheck } from '../ports/stored.ts'

type RootKeyFiles = Pick<Config, 'dataDir' | 'rootKeyFile' | 'rootKeyNextFile'>

/**
 * Opens the root key, and the next one if there is one: the store tells which of them is in use.
 *
 * With `create`, creates the first one if needed, but only on a new installation.
 */
export async function openRootKeys(
  config: RootKeyFiles,
  installed: RootKeyCheck | null,
  { create }: { readonly create: boolean },
): Promise<RootKeys> {
  const { rootKeyNextFile } = config
  const createIfMissing = create && installed === null
  const first = await FileKeyProvider.open(rootKeyFileOf(config), { createIfMissing })
  if (rootKeyNextFile === null || !(await hasRootKey(rootKeyNextFile))) {
    return new RootKeys([first], null)
  }
  const next = await FileKeyProvider.open(rootKeyNextFile, { createIfMissing: false })
  return new RootKeys([first, next], installed?.id ?? null)
}

export function rootKeyFileOf({ rootKeyFile, dataDir }: RootKeyFiles): string {
  return rootKeyFile ?? join(dataDir, 'root.key')
}

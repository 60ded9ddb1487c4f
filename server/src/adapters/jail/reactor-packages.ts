import path from 'node:path'
import { BUNDLED_PACKAGES, CLIENT_PACKAGE, MODULES_PACKAGE } from './allowed-modules.ts'
import { folderOfPackage, installedPackages, type InstalledPackages } from './packages.ts'

/** The packages that code may require. */
export interface ReactorPackages {
  readonly installed: InstalledPackages
  /** Bundled packages that are not installed. */
  readonly notInstalled: readonly string[]
}

/**
 * Finds the client, the bundled packages, and those that the operator has `added`: these first, where a name is both.
 *
 * The bundled packages are those that MODULES_PACKAGE finds. Without it there are none, even if the service or another
 * package happens to depend on some of the same names: what code can require depends on nothing else.
 */
export function findReactorPackages(added: readonly string[], anchor: string): ReactorPackages {
  const own = installedPackages([CLIENT_PACKAGE, ...added], anchor)
  const folder = folderOfPackage(MODULES_PACKAGE, anchor)
  const bundled = BUNDLED_PACKAGES.filter((it) => own.homes[it] === undefined)
  if (folder === null) return { installed: own, notInstalled: bundled }
  const modules = installedPackages(bundled, path.join(folder, 'package.json'))
  return {
    installed: merge(own, modules),
    notInstalled: bundled.filter((it) => modules.homes[it] === undefined),
  }
}

function merge(a: InstalledPackages, b: InstalledPackages): InstalledPackages {
  const union = (key: 'folders' | 'aliases' | 'links'): string[] => [
    ...new Set([...a[key], ...b[key]]),
  ]
  return {
    homes: { ...a.homes, ...b.homes },
    folders: union('folders'),
    aliases: union('aliases'),
    links: union('links'),
  }
}

import { existsSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'

/** Packages installed beside the service. */
export interface InstalledPackages {
  /** Per name, the `node_modules` folder that contains it. */
  readonly homes: Readonly<Record<string, string>>
  /** Folders of the packages and of all their dependencies. */
  readonly folders: readonly string[]
  /** Symbolic links under which `anchor` finds packages of `names`. */
  readonly aliases: readonly string[]
  /** All symbolic links under which they, and their dependencies, are found. */
  readonly links: readonly string[]
}

/**
 * Resolves `names` as the file `anchor` would. Packages that are not installed are omitted, so no guest can require
 * them.
 */
export function installedPackages(names: readonly string[], anchor: string): InstalledPackages {
  const homes: Record<string, string> = {}
  const folders = new Set<string>()
  const aliases: string[] = []
  const links = new Set<string>()
  for (const name of names) {
    const home = findHome(name, path.dirname(anchor))
    if (home === null) continue
    homes[name] = realHome(name, home)
    collect(name, home, folders, links)
    const place = path.join(home, name)
    if (realpathSync(place) !== place) aliases.push(place)
  }
  return { homes, folders: [...folders], aliases, links: [...links] }
}

/** Returns the `node_modules` that contains the package after resolving links, or `home` if that is none. */
function realHome(name: string, home: string): string {
  const real = realpathSync(path.join(home, name))
  const above = path.join(real, ...name.split('/').map(() => '..'))
  const found = path.basename(above) === 'node_modules' && path.join(above, name) === real
  return found ? above : home
}

/** Returns the real folder of the package that the file `anchor` finds under this name; null if there is none. */
export function folderOfPackage(name: string, anchor: string): string | null {
  const home = findHome(name, path.dirname(anchor))
  return home === null ? null : realpathSync(path.join(home, name))
}

function collect(name: string, home: string, folders: Set<string>, links: Set<string>): void {
  const place = path.join(home, name)
  const folder = realpathSync(place)
  if (folder !== place) links.add(place)
  if (folders.has(folder)) return
  folders.add(folder)
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(path.join(folder, 'package.json'), 'utf8'),
  )
  for (const it of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const itsHome = findHome(it, folder)
    if (itsHome !== null) collect(it, itsHome, folders, links)
  }
}

/** Searches as Node does: every node_modules on the way up. */
function findHome(name: string, from: string): string | null {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const home = path.join(folder, 'node_modules')
    if (existsSync(path.join(home, name, 'package.json'))) return home
    if (folder === path.dirname(folder)) return null
  }
}

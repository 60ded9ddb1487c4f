import { existsSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'

/** Packages as they are installed beside the service. */
export interface InstalledPackages {
  /** By name, the folder `node_modules` that has it. */
  readonly homes: Readonly<Record<string, string>>
  /** Of the packages and of all they depend on. */
  readonly folders: readonly string[]
  /** Of `names`, the folders where `anchor` finds them, if they are elsewhere. */
  readonly aliases: readonly string[]
}

/** Finds `names` as `anchor`, a file, would. What is not installed is left out: nobody will find it inside. */
export function installedPackages(names: readonly string[], anchor: string): InstalledPackages {
  const homes: Record<string, string> = {}
  const folders = new Set<string>()
  const aliases: string[] = []
  for (const name of names) {
    const home = findHome(name, path.dirname(anchor))
    if (home === null) continue
    homes[name] = realHome(name, home)
    collect(name, home, folders)
    const place = path.join(home, name)
    if (realpathSync(place) !== place) aliases.push(place)
  }
  return { homes, folders: [...folders], aliases }
}

/** Where the package is found without following a link, if that is a `node_modules` as well. */
function realHome(name: string, home: string): string {
  const real = realpathSync(path.join(home, name))
  const above = path.join(real, ...name.split('/').map(() => '..'))
  const found = path.basename(above) === 'node_modules' && path.join(above, name) === real
  return found ? above : home
}

function collect(name: string, home: string, folders: Set<string>): void {
  const folder = realpathSync(path.join(home, name))
  if (folders.has(folder)) return
  folders.add(folder)
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(path.join(folder, 'package.json'), 'utf8'),
  )
  for (const it of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const itsHome = findHome(it, folder)
    if (itsHome !== null) collect(it, itsHome, folders)
  }
}

/** As Node looks for it: in each node_modules on the way up. */
function findHome(name: string, from: string): string | null {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const home = path.join(folder, 'node_modules')
    if (existsSync(path.join(home, name, 'package.json'))) return home
    if (folder === path.dirname(folder)) return null
  }
}

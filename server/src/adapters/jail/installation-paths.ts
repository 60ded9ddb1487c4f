import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HiddenPath } from './guest/hidden-paths.ts'
import type { InstalledPackages } from './packages.ts'

/** Root of the service's own package. */
const SERVICE = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[/\\]$/, '')

/**
 * Returns the paths of the installation that a guest could come across, with neutral names: `guest` is the folder of
 * its program.
 */
export function installationPaths(
  { homes, folders, aliases }: InstalledPackages,
  guest: string,
  { launcher, node }: { readonly launcher: string; readonly node: string },
): HiddenPath[] {
  const shown = new Map<string, string>()
  for (const it of [...folders, ...aliases]) shown.set(it, `${PACKAGES}/${path.basename(it)}`)
  for (const it of [...Object.values(homes), ...[...folders, ...aliases].flatMap(homeOf)]) {
    shown.set(path.dirname(it), '/vault')
    shown.set(it, PACKAGES)
  }
  shown.set(SERVICE, '/vault')
  shown.set(path.dirname(launcher), '/reactor/launcher')
  shown.set(guest, '/reactor/runtime')
  shown.set(node, '/reactor/node')
  // A folder at the top, such as /app, tells nothing, and its name may mean something else to the code.
  return [...shown]
    .filter(([real]) => path.dirname(real) !== path.parse(real).root && path.dirname(real) !== real)
    .map(([real, shown]) => ({ real, shown }))
}

const PACKAGES = '/reactor/node_modules'

/** Returns the outermost `node_modules` above a package. */
function homeOf(folder: string): string[] {
  const at = folder.indexOf(`${path.sep}node_modules${path.sep}`)
  return at < 0 ? [] : [`${folder.slice(0, at)}${path.sep}node_modules`]
}

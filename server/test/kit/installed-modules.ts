import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { MODULES_PACKAGE } from '../../src/adapters/jail/allowed-modules.ts'

/**
 * Makes the package of bundled packages in `folder`, with `names` in it: as npm nests them if the vault's own dependencies
 * have other versions of all.
 *
 * Each exports `{ made, stack }`, its name and a stack, which another package inside makes for it.
 */
export function installModules(folder: string, names: readonly string[]): void {
  const modules = path.join(folder, 'node_modules', MODULES_PACKAGE)
  put(modules, { dependencies: toVersions(names) }, '')
  for (const it of names) {
    const code = `module.exports = require('nested')(${JSON.stringify(it)})`
    put(path.join(modules, 'node_modules', it), { dependencies: toVersions(['nested']) }, code)
  }
  put(
    path.join(modules, 'node_modules/nested'),
    {},
    `module.exports = (made) => ({ made, stack: new Error(made).stack })`,
  )
}

function toVersions(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((it) => [it, '1']))
}

/** Makes a package whose one file has this code. */
export function put(folder: string, manifest: object, code: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(path.join(folder, 'index.js'), code)
}

import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { prepareGuestInstallation } from './guest-installation.ts'
import { installedPackages } from './packages.ts'
import { canBeReadByAll } from './readable.ts'

test('prepareGuestInstallation() copies packages that only root can read, and finds the same dependencies', (t) => {
  const closed = realpathSync(temporaryFolder(t))
  chmodSync(closed, 0o700)
  // As pnpm installs: a package and its dependency are links into a store.
  const store = path.join(closed, 'node_modules/.store')
  put(path.join(store, 'a@1/node_modules/a'), { dependencies: { b: '1' } }, `require('b') + 1`)
  put(path.join(store, 'b@1/node_modules/b'), {}, '41')
  symlinkSync(path.join(store, 'b@1/node_modules/b'), path.join(store, 'a@1/node_modules/b'))
  symlinkSync(path.join(store, 'a@1/node_modules/a'), path.join(closed, 'node_modules/a'))
  const packages = installedPackages(['a'], path.join(closed, 'index.js'))

  const { packages: found, files, ownUser } = prepareGuestInstallation('jail', packages, 'bwrap')
  t.after(() => files.remove())

  assert.equal(createRequire(path.join(found.homes['a']!, '../index.js'))('a'), 42)
  const root = process.getuid!() === 0
  assert.equal(ownUser, root)
  assert.equal(canBeReadByAll(found.folders), root)
  assert.equal(
    found.folders.every((it) => it.startsWith(closed)),
    !root,
  )
})

function put(folder: string, manifest: object, value: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(path.join(folder, 'index.js'), `module.exports = ${value}`)
}

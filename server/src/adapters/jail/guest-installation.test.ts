import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, readdirSync, realpathSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { put } from '../../../test/kit/installed-modules.ts'
import { readableFolder } from '../../../test/kit/readable-installation.ts'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { prepareGuestInstallation } from './guest-installation.ts'
import { installedPackages } from './packages.ts'
import { canBeReadByAll } from './readable.ts'

test('prepareGuestInstallation() copies packages that only root can read, and finds the same dependencies', (t) => {
  const closed = realpathSync(temporaryFolder(t))
  chmodSync(closed, 0o700)
  // As pnpm installs: a package and its dependency are links into a store.
  const store = path.join(closed, 'node_modules/.store')
  put(
    path.join(store, 'a@1/node_modules/a'),
    { dependencies: { b: '1' } },
    `module.exports = require('b') + 1`,
  )
  put(path.join(store, 'b@1/node_modules/b'), {}, 'module.exports = 41')
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

test('prepareGuestInstallation() makes no copy where others could replace it, and goes on where it cannot be written', (t) => {
  const closed = realpathSync(temporaryFolder(t))
  put(path.join(closed, 'node_modules/a'), {}, 'module.exports = 42')
  chmodSync(closed, 0o700)
  const packages = installedPackages(['a'], path.join(closed, 'index.js'))
  const [ofOthers, ofGroup, ofAll, inner] = ['others', 'group', 'all', 'all/inner'].map((name) => {
    const folder = path.join(realpathSync(readableFolder(t)), name)
    mkdirSync(folder, { recursive: true })
    return folder
  })
  const root = process.getuid!() === 0
  if (root) chownSync(ofOthers!, 1, 1)
  chmodSync(ofGroup!, 0o775)
  chmodSync(ofAll!, 0o777)
  chmodSync(path.dirname(inner!), 0o777)
  const unfit = [ofOthers!, ofGroup!, ofAll!, inner!]
  const last = readableFolder(t)

  const parents = [...unfit, '/proc', last]
  const { files, ownUser } = prepareGuestInstallation('jail', packages, 'bwrap', parents)
  t.after(() => files.remove())

  assert.equal(ownUser, root)
  if (root) assert.equal(path.dirname(files.folder), realpathSync(last))
  assert.deepEqual(
    unfit.flatMap((it) => readdirSync(it)),
    [],
  )
})

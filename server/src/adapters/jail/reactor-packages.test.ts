import assert from 'node:assert/strict'
import { realpathSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { installModules, put } from '../../../test/kit/installed-modules.ts'
import { temporaryFolder } from '../../../test/kit/running-vault.ts'
import { BUNDLED_PACKAGES, CLIENT_PACKAGE, MODULES_PACKAGE } from './allowed-modules.ts'
import { findReactorPackages } from './reactor-packages.ts'

type PlaceScope = Parameters<typeof temporaryFolder>[0]

/** Returns a folder, and the path of a package installed in it; `anchor` is a file of the service, installed in it too. */
function place(t: PlaceScope) {
  const folder = realpathSync(temporaryFolder(t))
  const at = (name: string): string => path.join(folder, 'node_modules', name)
  const anchor = path.join(at('symbolon'), 'dist/runner.js')
  return { folder, at, anchor, home: path.dirname(at('x')) }
}

test('findReactorPackages() finds every bundled package and the client where npm installs this checkout', () => {
  const { installed, notInstalled } = findReactorPackages([], fileURLToPath(import.meta.url))
  assert.deepEqual(notInstalled, [])
  assert.deepEqual(
    Object.keys(installed.homes).toSorted(),
    [CLIENT_PACKAGE, ...BUNDLED_PACKAGES].toSorted(),
  )
})

test('findReactorPackages() finds bundled packages beside, inside and through links of their package', (t) => {
  const beside = place(t)
  put(beside.at(MODULES_PACKAGE), { dependencies: { uuid: '1' } }, '')
  put(beside.at('uuid'), {}, '')
  assert.deepEqual(findReactorPackages([], beside.anchor).installed.homes, { uuid: beside.home })

  const inside = place(t)
  installModules(inside.folder, ['uuid'])
  const found = findReactorPackages([], inside.anchor).installed
  const nested = path.join(inside.at(MODULES_PACKAGE), 'node_modules')
  assert.deepEqual(found.homes, { uuid: nested })
  assert.deepEqual(found.folders, [path.join(nested, 'uuid'), path.join(nested, 'nested')])

  // As pnpm installs: each package has links to its dependencies beside it, in a store.
  const linked = place(t)
  const store = linked.at('.store/modules/node_modules')
  put(path.join(store, MODULES_PACKAGE), { dependencies: { uuid: '1' } }, '')
  put(linked.at('.store/uuid/node_modules/uuid'), {}, '')
  symlinkSync(linked.at('.store/uuid/node_modules/uuid'), path.join(store, 'uuid'))
  put(linked.at('@symbolon/other'), {}, '')
  symlinkSync(path.join(store, MODULES_PACKAGE), linked.at(MODULES_PACKAGE))
  const { installed } = findReactorPackages([], linked.anchor)
  assert.deepEqual(installed.homes, { uuid: linked.at('.store/uuid/node_modules') })
  assert.deepEqual(installed.aliases, [path.join(store, 'uuid')])
})

test('findReactorPackages() finds no bundled package without theirs, even if another package has the same', (t) => {
  const { at, anchor } = place(t)
  put(at(CLIENT_PACKAGE), { dependencies: { axios: '1' } }, '')
  put(at('axios'), {}, '')
  const { installed, notInstalled } = findReactorPackages([], anchor)
  assert.deepEqual(Object.keys(installed.homes), [CLIENT_PACKAGE])
  assert.deepEqual(notInstalled, BUNDLED_PACKAGES)
})

test('findReactorPackages() prefers packages that the operator adds, and needs no other for them', (t) => {
  const { folder, at, anchor, home } = place(t)
  put(at('axios'), {}, '')
  const added = findReactorPackages(['axios', 'absent'], anchor)
  assert.deepEqual(added.installed.homes, { axios: home })
  assert.ok(!added.notInstalled.includes('axios'))

  installModules(folder, ['axios', 'uuid'])
  const { installed, notInstalled } = findReactorPackages(['axios'], anchor)
  const nested = path.join(at(MODULES_PACKAGE), 'node_modules')
  assert.deepEqual(installed.homes, { axios: home, uuid: nested })
  assert.deepEqual(
    notInstalled,
    BUNDLED_PACKAGES.filter((it) => !['axios', 'uuid'].includes(it)),
  )
})

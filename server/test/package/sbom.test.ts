/** The software bill of materials (SBOM) that npm makes from the checkout, in both of its formats. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { BUNDLED_PACKAGES } from '../../src/adapters/jail/allowed-modules.ts'
import { lacksNpm } from '../kit/programs.ts'
import { PROJECT } from '../tidy/source.ts'

interface Manifest {
  readonly name: string
  readonly version: string
}

interface LockedPackage {
  /** Only where it differs from the name it is installed under. */
  readonly name?: string
  readonly version: string
  readonly link?: true
  readonly dev?: true
  readonly optional?: true
  readonly devOptional?: true
}

interface Sbom {
  /** The package URL of its subject. */
  readonly subject: string
  /** The package URLs it lists, the subject's included. */
  readonly listed: readonly string[]
  /** The package URLs that each of them depends on directly. */
  readonly dependencies: ReadonlyMap<string, readonly string[]>
  /** Those it marks as used in development only; CycloneDX has a property for that, SPDX has none. */
  readonly development: readonly string[]
  /** Those it marks as optional, likewise. */
  readonly optional: readonly string[]
}

const WORKSPACE = readJson('package.json') as Manifest
const SERVER = readJson('server/package.json') as Manifest
const MODULES = readJson('reactor-modules/package.json') as Manifest
const LOCK = readJson('package-lock.json') as { packages: Record<string, LockedPackage> }

const PRODUCTION = lockedUrls((it) => !it.dev && !it.devOptional && !it.optional)
const DEVELOPMENT = lockedUrls((it) => it.dev === true).filter((it) => !PRODUCTION.includes(it))

const skip = lacksNpm([10, 2])

const FORMATS = { cyclonedx: parseCycloneDx, spdx: parseSpdx } as const

for (const [format, parse] of Object.entries(FORMATS)) {
  for (const workspace of [[], ['--workspace', 'server']]) {
    const args = ['sbom', '--sbom-format', format, ...workspace]
    describe(`npm ${args.join(' ')}`, { skip }, () => {
      test('names the workspace, the server and every production dependency', () => {
        assert.ok(PRODUCTION.length > 100, `it saw ${PRODUCTION.length} production dependencies`)
        const { subject, listed, development } = parse(npm(...args))
        assert.equal(subject, packageUrl(WORKSPACE))
        for (const it of [packageUrl(SERVER), ...PRODUCTION]) {
          assert.ok(listed.includes(it), `${it} is missing`)
          assert.ok(!development.includes(it), `${it} is marked as development`)
        }
      })

      // It misses production dependencies that development shares, such as zod: npm/cli#7909.
      test('names the server and no development dependency with --omit=dev', () => {
        const { subject, listed } = parse(npm(...args, '--omit=dev'))
        assert.equal(subject, packageUrl(WORKSPACE))
        assert.ok(listed.includes(packageUrl(SERVER)))
        for (const it of DEVELOPMENT) assert.ok(!listed.includes(it), `${it} is listed`)
      })
    })
  }
}

describe('of the packages that only reactors require, an SBOM', { skip }, () => {
  const onlyForReactors = lockedUrls((it) => it.optional === true).filter((it) =>
    BUNDLED_PACKAGES.some((name) => it.startsWith(`pkg:npm/${name}@`)),
  )
  const [server, modules] = [packageUrl(SERVER), packageUrl(MODULES)]

  for (const [format, parse] of Object.entries(FORMATS)) {
    test(`in ${format} attributes none to the server, and each to their own package`, () => {
      const { dependencies } = parse(npm('sbom', '--sbom-format', format, '--omit=dev'))
      const ofServer = reachedFrom(server, dependencies, modules)
      const ofModules = reachedFrom(modules, dependencies)
      assert.ok(ofServer.size > 80 && dependencies.get(server)!.includes(modules))
      for (const name of ['node-forge', 'crypto-js']) {
        assert.ok(
          onlyForReactors.some((it) => it.startsWith(`pkg:npm/${name}@`)),
          name,
        )
      }
      for (const it of onlyForReactors) {
        assert.ok(ofModules.has(it), `${it} is missing`)
        assert.ok(!ofServer.has(it), `${it} is attributed to the server`)
      }
    })
  }

  // With --omit=optional it would also miss what the server needs and shares with them, such as axios: npm/cli#7909 again.
  test('in cyclonedx marks each as optional, and nothing that the server cannot do without', () => {
    const { optional } = FORMATS.cyclonedx(npm('sbom', '--sbom-format', 'cyclonedx'))
    for (const it of [modules, ...onlyForReactors]) assert.ok(optional.includes(it), it)
    for (const it of PRODUCTION) assert.ok(!optional.includes(it), it)
  })
})

/** Returns what `start` depends on, directly or not, other than by way of `avoided`. */
function reachedFrom(
  start: string,
  dependencies: Sbom['dependencies'],
  avoided?: string,
): Set<string> {
  const reached = new Set([start])
  for (const it of reached) {
    for (const next of it === avoided ? [] : (dependencies.get(it) ?? [])) reached.add(next)
  }
  return reached
}

test('the workspace and the packages for reactors have the version of the server, since an SBOM names all', () => {
  assert.deepEqual([WORKSPACE.version, MODULES.version], [SERVER.version, SERVER.version])
})

/** Runs npm at the root, offline, with a home that cannot be written, and parses its output. */
function npm(...args: string[]): unknown {
  const { status, stdout, stderr, error } = spawnSync('npm', args, {
    cwd: PROJECT,
    env: { PATH: process.env['PATH'], HOME: '/dev/null', npm_config_offline: 'true' },
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  assert.equal(status, 0, error?.message ?? stderr)
  return JSON.parse(stdout)
}

/** Source: CycloneDX 1.5; the property is from its npm taxonomy. */
function parseCycloneDx(document: unknown): Sbom {
  interface Component {
    readonly 'bom-ref': string
    readonly purl: string
    readonly scope?: string
    readonly properties: readonly { readonly name: string; readonly value: string }[]
  }
  const { metadata, components, dependencies } = document as {
    metadata: { component: Component }
    components: Component[]
    dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
  }
  const all = [metadata.component, ...components]
  const urls = new Map(all.map((it) => [it['bom-ref'], it.purl]))
  const urlOf = (reference: string): string => urls.get(reference)!
  const isDevelopment = ({ properties }: Component): boolean =>
    properties.some((it) => it.name === 'cdx:npm:package:development' && it.value === 'true')
  return {
    subject: metadata.component.purl,
    listed: all.map((it) => it.purl),
    dependencies: new Map(
      dependencies.map(({ ref, dependsOn }) => [urlOf(ref), dependsOn.map(urlOf)]),
    ),
    development: components.filter(isDevelopment).map((it) => it.purl),
    optional: components.filter((it) => it.scope === 'optional').map((it) => it.purl),
  }
}

/** Source: SPDX 2.3. */
function parseSpdx(document: unknown): Sbom {
  interface Package {
    readonly SPDXID: string
    readonly externalRefs: readonly { referenceType: string; referenceLocator: string }[]
  }
  interface Relationship {
    readonly spdxElementId: string
    readonly relatedSpdxElement: string
    readonly relationshipType: string
  }
  const { documentDescribes, packages, relationships } = document as {
    documentDescribes: string[]
    packages: Package[]
    relationships: Relationship[]
  }
  const urlOf = ({ externalRefs }: Package): string =>
    externalRefs.find((it) => it.referenceType === 'purl')!.referenceLocator
  assert.equal(documentDescribes.length, 1)
  const urls = new Map(packages.map((it) => [it.SPDXID, urlOf(it)]))
  const dependencies = new Map<string, string[]>()
  for (const { spdxElementId: from, relatedSpdxElement: to, relationshipType } of relationships) {
    // The other direction is used for every kind of dependency.
    const [user, used] = relationshipType.endsWith('_OF') ? [to, from] : [from, to]
    if (!urls.has(user) || !urls.has(used)) continue
    const known = dependencies.get(urls.get(user)!) ?? []
    dependencies.set(urls.get(user)!, [...known, urls.get(used)!])
  }
  return {
    subject: urlOf(packages.find((it) => it.SPDXID === documentDescribes[0])!),
    listed: packages.map(urlOf),
    dependencies,
    development: [],
    optional: [],
  }
}

function lockedUrls(select: (it: LockedPackage) => boolean): string[] {
  return Object.entries(LOCK.packages)
    .filter(([place, it]) => place.includes('node_modules/') && !it.link && select(it))
    .map(([place, it]) => {
      const installedAs = place.split('node_modules/').at(-1)!
      return packageUrl({ name: it.name ?? installedAs, version: it.version })
    })
}

/** Source: the package URL specification, type npm. */
function packageUrl({ name, version }: Manifest): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(path.join(PROJECT, file), 'utf8'))
}

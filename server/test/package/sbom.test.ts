/** The software bill of materials (SBOM) that npm makes from the checkout, in both of its formats. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
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
  /** Those it marks as used in development only; CycloneDX has a property for that, SPDX has none. */
  readonly development: readonly string[]
}

const WORKSPACE = readJson('package.json') as Manifest
const SERVER = readJson('server/package.json') as Manifest
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

test('the workspace has the version of the server, since an SBOM names both', () => {
  assert.equal(WORKSPACE.version, SERVER.version)
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
    readonly purl: string
    readonly properties: readonly { readonly name: string; readonly value: string }[]
  }
  const { metadata, components } = document as {
    metadata: { component: Component }
    components: Component[]
  }
  const isDevelopment = ({ properties }: Component): boolean =>
    properties.some((it) => it.name === 'cdx:npm:package:development' && it.value === 'true')
  return {
    subject: metadata.component.purl,
    listed: [metadata.component, ...components].map((it) => it.purl),
    development: components.filter(isDevelopment).map((it) => it.purl),
  }
}

/** Source: SPDX 2.3. */
function parseSpdx(document: unknown): Sbom {
  interface Package {
    readonly SPDXID: string
    readonly externalRefs: readonly { referenceType: string; referenceLocator: string }[]
  }
  const { documentDescribes, packages } = document as {
    documentDescribes: string[]
    packages: Package[]
  }
  const urlOf = ({ externalRefs }: Package): string =>
    externalRefs.find((it) => it.referenceType === 'purl')!.referenceLocator
  assert.equal(documentDescribes.length, 1)
  return {
    subject: urlOf(packages.find((it) => it.SPDXID === documentDescribes[0])!),
    listed: packages.map(urlOf),
    development: [],
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

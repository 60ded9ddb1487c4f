/**
 * Builds what browsers load: `dist/v1/<hash>/` with the page's script, and the iframe's script and style sheet.
 *
 * The hash is that of the files, so a URL with it stands for these very bytes. `node build.ts` builds; a vault that runs from a
 * checkout calls `currentBuild()` when it starts. `node build.ts --release` also copies the build to `released/`, where it is kept.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

const HOME = import.meta.dirname
const SOURCES = ['build.ts', 'package.json', 'tsconfig.json', 'src/**/*.{ts,css}']

/** Browsers in which all of it works: `light-dark()`, `Promise.withResolvers()` and module scripts with top-level await. */
const TARGETS = ['chrome123', 'firefox121', 'safari17.5']

/** Kept beside the builds: which of them is current, and of which sources it was made. */
interface BuildManifest {
  readonly sources: string
  readonly hash: string
}

/** Returns the folder of the builds of major version 1, with a current build in it. Builds only if the sources have changed. */
export async function currentBuild(): Promise<{ readonly folder: string; readonly hash: string }> {
  const folder = path.join(HOME, 'dist/v1')
  const manifestFile = path.join(folder, 'manifest.json')
  const sources = hashOfSources()
  if (existsSync(manifestFile)) {
    const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as BuildManifest
    if (manifest.sources === sources && existsSync(path.join(folder, manifest.hash))) {
      return { folder, hash: manifest.hash }
    }
  }
  const files = await bundle()
  const hash = hashOf(files)
  publish(folder, hash, files)
  const manifest: BuildManifest = { sources, hash }
  // Renamed into place, since other servers may start just now.
  const written = path.join(mkdtempSync(path.join(folder, '.manifest-')), 'manifest.json')
  writeFileSync(written, JSON.stringify(manifest))
  renameSync(written, manifestFile)
  rmSync(path.dirname(written), { recursive: true })
  return { folder, hash }
}

/** Returns the files of a build by name. */
export async function bundle(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { build, stop } = await import('esbuild')
  const { outputFiles } = await build({
    absWorkingDir: HOME,
    entryPoints: {
      fields: 'src/page/fields.ts',
      frame: 'src/frame/frame.ts',
    },
    outdir: 'dist',
    bundle: true,
    format: 'esm',
    target: TARGETS,
    minify: true,
    legalComments: 'none',
    write: false,
  })
  const { outputFiles: styles } = await build({
    absWorkingDir: HOME,
    entryPoints: { frame: 'src/frame/frame.css' },
    outdir: 'dist',
    bundle: true,
    target: TARGETS,
    minify: true,
    write: false,
  })
  // Its service process would live as long as the vault.
  await stop()
  return new Map(
    [...outputFiles, ...styles]
      .map((it) => [path.basename(it.path), it.contents] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function publish(folder: string, hash: string, files: ReadonlyMap<string, Uint8Array>): void {
  const target = path.join(folder, hash)
  if (existsSync(target)) return
  mkdirSync(folder, { recursive: true })
  const made = mkdtempSync(path.join(folder, '.build-'))
  for (const [name, content] of files) writeFileSync(path.join(made, name), content)
  // Also for servers that run as other users.
  chmodSync(made, 0o755)
  try {
    renameSync(made, target)
  } catch (error) {
    rmSync(made, { recursive: true })
    // Another server has built the same bytes meanwhile.
    if (!existsSync(target)) throw error
  }
}

/** Returns a name for these bytes: 16 hexadecimal digits of their SHA-256. */
function hashOf(files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256')
  for (const [name, content] of files) hash.update(`${name} ${content.length}\n`).update(content)
  return hash.digest('hex').slice(0, 16)
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  for (const file of globSync(SOURCES, { cwd: HOME }).toSorted()) {
    if (file.endsWith('.test.ts')) continue
    hash.update(`${file}\n`).update(readFileSync(path.join(HOME, file)))
  }
  return hash.digest('hex')
}

if (import.meta.main) {
  const { folder, hash } = await currentBuild()
  process.stdout.write(`${path.join(folder, hash)}\n`)
  if (process.argv.includes('--release')) {
    cpSync(path.join(folder, hash), path.join(HOME, 'released/v1', hash), { recursive: true })
  }
}

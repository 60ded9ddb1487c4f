import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Builds the published package from the source: `src/` becomes `dist/`, as JavaScript.
 *
 * Node strips types in a checkout but refuses to inside node_modules, so a package needs the emitted
 * form. Nothing is bundled, minified or renamed: a stack trace from a published package reads like the
 * source. Tests and contract suites are left out; every other kind of file (SQL, certificates, pages) is
 * copied to the same place. `home` is the folder of the package, with `build/tsconfig.json` in it.
 */
export function build(home: string): void {
  const source = path.join(home, 'src')
  const target = path.join(home, 'dist')
  rmSync(target, { recursive: true, force: true })

  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  const { status } = spawnSync(process.execPath, [tsc, '-p', path.join(home, 'build')], {
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error(`Cannot build: tsc exited with ${status}`)

  cpSync(source, target, {
    recursive: true,
    filter: (it) => !it.endsWith('.ts'),
  })
  for (const file of globSync('**/*.js', { cwd: target })) {
    const emitted = path.join(target, file)
    writeFileSync(emitted, pointToEmitted(readFileSync(emitted, 'utf8'), path.dirname(emitted)))
  }
}

/** Copies the pages that the service serves from the repository into the package; decision records stay behind. */
export function copyDocumentation(home: string): void {
  const pages = path.join(home, '..', 'docs')
  cpSync(pages, path.join(home, 'dist/docs'), {
    recursive: true,
    filter: (it) => it !== path.join(pages, 'decisions'),
  })
}

/**
 * Copies the builds of card fields into the package: the current one, which is built now, and all that were released, which
 * pages may still name. `workspace` is their folder.
 */
export async function copyFieldBuilds(home: string, workspace: string): Promise<void> {
  const target = path.join(home, 'dist/field-builds/v1')
  const { currentBuild } = (await import(path.join(workspace, 'build.ts'))) as FieldsBuilder
  const { folder, hash } = await currentBuild()
  const released = path.join(workspace, 'released/v1')
  if (existsSync(released)) cpSync(released, target, { recursive: true })
  cpSync(path.join(folder, hash), path.join(target, hash), { recursive: true })
  writeFileSync(path.join(target, 'current'), `${hash}\n`)
}

interface FieldsBuilder {
  readonly currentBuild: () => Promise<{ readonly folder: string; readonly hash: string }>
}

/**
 * Renames the modules that the code loads by address: workers, and programs started on their own.
 *
 * The compiler rewrites imports; in `new URL('./writer.ts', import.meta.url)` it sees a string. Throws
 * when such a module was not emitted, or when some other string still leads to a source file.
 */
export function pointToEmitted(code: string, folder: string): string {
  const pointed = code.replaceAll(ADDRESS, (_, before: string, module: string) => {
    if (!existsSync(path.join(folder, `${module}.js`))) {
      throw new Error(
        `Cannot build: ${folder} loads ${module}.ts, which is not part of the package`,
      )
    }
    return `${before}${module}.js`
  })
  const left = SOURCE.exec(pointed)
  if (left !== null) {
    throw new Error(
      `Cannot build: ${folder} names ${left[1]}, which a package does not have; ` +
        'write new URL(..., import.meta.url) around it',
    )
  }
  return pointed
}

const ADDRESS = /(new URL\(\s*['"])(\.{1,2}\/[^'"]*)\.ts(?=['"],\s*import\.meta\.url\s*\))/g
const SOURCE = /['"](\.{1,2}\/[^'"\s]*\.ts)['"]/

if (import.meta.main) {
  const home = path.join(import.meta.dirname, '..')
  build(home)
  copyDocumentation(home)
  await copyFieldBuilds(home, path.join(home, '../fields'))
  // npm packs these two from a package's own folder only.
  const root = path.join(home, '..')
  for (const it of ['server/LICENSE', 'server/README.md', 'reactor-modules/LICENSE']) {
    const original = path.join(root, path.basename(it))
    if (existsSync(original)) copyFileSync(original, path.join(root, it))
  }
}

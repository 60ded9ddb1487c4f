import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MiB } from '../../base/limits.ts'

/** The guest's own program, where it may be read from inside. */
export interface GuestFiles {
  readonly folder: string
  readonly main: string
  remove(): void
}

/**
 * Copies the guest's program to a folder of its own, as JavaScript.
 *
 * A guest sees that folder and not where the service lies; and it need not strip types, which would cost each of
 * them a compiler's worth of memory.
 */
export function prepareGuestFiles(): GuestFiles {
  const source = fileURLToPath(new URL('./guest/main.ts', import.meta.url))
  const [home, extension] = [path.dirname(source), path.extname(source)]
  const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-guest-'))
  chmodSync(folder, 0o755)
  const files = readdirSync(home)
    .filter((it) => path.extname(it) === extension && !it.endsWith(`.test${extension}`))
    .map((it) => path.join(home, it))
  const scripts =
    extension === '.ts' ? withoutTypes(files) : files.map((it) => readFileSync(it, 'utf8'))
  for (const [n, file] of files.entries()) {
    const script = scripts[n]!.replaceAll(OWN_IMPORT, '$1.mjs$2')
    const name = path.basename(file, extension)
    writeFileSync(path.join(folder, `${name}.mjs`), script, { mode: 0o644 })
  }
  // Where Node stops looking for what kind of modules these are.
  writeFileSync(path.join(folder, 'package.json'), '{}', { mode: 0o644 })
  return {
    folder,
    main: path.join(folder, 'main.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/**
 * Returns what is in `files`, as JavaScript, in their order.
 *
 * By a process of its own, and once: the compiler that strips types stays in memory, and takes 25 MB of it.
 */
function withoutTypes(files: readonly string[]): readonly string[] {
  const args = ['--no-warnings', '--input-type=module', '--eval', STRIP, ...files]
  const options = { encoding: 'utf8', env: {}, maxBuffer: 4 * MiB } as const
  return (stripped ??= JSON.parse(execFileSync(process.execPath, args, options)) as string[])
}

let stripped: readonly string[] | undefined

const STRIP = `
  import { readFileSync } from 'node:fs'
  import { stripTypeScriptTypes } from 'node:module'
  const scripts = process.argv.slice(1).map((it) => stripTypeScriptTypes(readFileSync(it, 'utf8')))
  process.stdout.write(JSON.stringify(scripts))`

/** An import of a file beside: it ends in .ts in a checkout, in .js in a published package. */
const OWN_IMPORT = /(\bfrom '\.\/[a-z-]+)\.[jt]s(')/g

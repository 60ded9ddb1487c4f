import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MiB } from '../../base/limits.ts'

/** The guest's program, in a place that guests can read. */
export interface GuestFiles {
  readonly folder: string
  readonly main: string
  readonly remove: () => void
}

/**
 * Prepares the guest's program as JavaScript. A published package contains it. A checkout gets a copy without types in
 * a temporary folder: if each guest stripped them, each would need the memory of a compiler. Also removes such folders
 * left by services that were killed. With `copyTo`, always makes the copy, in that folder.
 */
export function prepareGuestFiles(copyTo?: string): GuestFiles {
  const source = fileURLToPath(new URL('./guest/main.ts', import.meta.url))
  const home = path.dirname(source)
  const published = path.extname(source) === '.js'
  if (published && copyTo === undefined) return { folder: home, main: source, remove: () => {} }
  const parent = realpathSync(copyTo ?? tmpdir())
  removeLeftFolders(parent)
  const folder = mkdtempSync(path.join(parent, `${nameFor(process.pid)}-`))
  chmodSync(folder, 0o755)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  if (published) {
    for (const it of readdirSync(home)) {
      writeReadable(path.join(folder, it), readFileSync(path.join(home, it), 'utf8'))
    }
    return { folder, main: path.join(folder, path.basename(source)), remove }
  }
  const files = readdirSync(home).filter((it) => it.endsWith('.ts') && !it.endsWith('.test.ts'))
  const scripts = withoutTypes(files.map((it) => path.join(home, it)))
  for (const [n, file] of files.entries()) {
    const script = scripts[n]!.replaceAll(OWN_MODULE, '$1.mjs$2')
    writeReadable(path.join(folder, `${path.basename(file, '.ts')}.mjs`), script)
  }
  // Ends Node's search for the module type here.
  writeReadable(path.join(folder, 'package.json'), '{}')
  return { folder, main: path.join(folder, 'main.mjs'), remove }
}

/** Makes the file readable for every user, whatever the service's umask. */
function writeReadable(file: string, text: string): void {
  writeFileSync(file, text)
  chmodSync(file, 0o644)
}

/** Matches references to sibling modules, by import or URL. */
const OWN_MODULE = /(\b(?:from |new URL\()'\.\/[a-z-]+)\.ts(')/g

/** Removes stale folders in `parent` of this user's services that no longer run. */
export function removeLeftFolders(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [, start, id] = /^(symbolon-guest-\d+-)(\d+)-/.exec(name) ?? []
    if (start === undefined || nameFor(Number(id)) !== `${start}${id}` || isRunning(Number(id))) {
      continue
    }
    const folder = path.join(parent, name)
    try {
      const { uid } = lstatSync(folder)
      if (uid === process.getuid?.()) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Another service removed it first.
    }
  }
}

/** Includes the PID namespace: containers may share the folder but not their process ids. */
function nameFor(id: number): string {
  let space = '0'
  try {
    space = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))![0]
  } catch {
    // Some systems have no PID namespaces, so there is only one.
  }
  return `symbolon-guest-${space}-${id}`
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * Returns the contents of `files` as JavaScript, in the same order.
 *
 * Runs once, in a process of its own, because the compiler that strips types would stay in memory with 25 MB. The
 * result is stored in Node's compile cache, if that is enabled, to speed up the next start.
 */
function withoutTypes(files: readonly string[]): readonly string[] {
  const kept = getCompileCacheDir()
  return (stripped ??=
    kept === undefined ? strip(files) : keptOrStripped(files, path.join(kept, 'guest.json')))
}

let stripped: readonly string[] | undefined

/**
 * Returns the result cached in the file `kept` if it is for the same files and the same Node; otherwise calls strip()
 * and stores its result.
 */
export function keptOrStripped(files: readonly string[], kept: string): readonly string[] {
  const digest = digestOf(files)
  const made = readKept(kept)
  if (made?.digest === digest && made.scripts.length === files.length) return made.scripts
  const scripts = strip(files)
  try {
    writeFileSync(kept, JSON.stringify({ digest, scripts } satisfies StrippedFiles), {
      mode: 0o600,
    })
  } catch {
    // Without a writable cache, the next start is only slower.
  }
  return scripts
}

interface StrippedFiles {
  readonly digest: string
  readonly scripts: readonly string[]
}

/**
 * Returns undefined for an incomplete file, which another process may be writing; the scripts are then stripped again.
 */
function readKept(file: string): StrippedFiles | undefined {
  try {
    const { digest, scripts } = JSON.parse(readFileSync(file, 'utf8')) as Partial<StrippedFiles>
    if (digest === undefined || !Array.isArray(scripts)) return undefined
    return { digest, scripts: scripts.map(String) }
  } catch {
    return undefined
  }
}

function digestOf(files: readonly string[]): string {
  const hash = createHash('sha256').update(process.version).update(STRIP)
  for (const it of files) hash.update(createHash('sha256').update(readFileSync(it)).digest())
  return hash.digest('hex')
}

function strip(files: readonly string[]): readonly string[] {
  const args = ['--no-warnings', '--input-type=module', '--eval', STRIP, ...files]
  const options = { encoding: 'utf8', env: {}, maxBuffer: 4 * MiB } as const
  return JSON.parse(execFileSync(process.execPath, args, options)) as string[]
}

const STRIP = `
  import { readFileSync } from 'node:fs'
  import { stripTypeScriptTypes } from 'node:module'
  const scripts = process.argv.slice(1).map((it) => stripTypeScriptTypes(readFileSync(it, 'utf8')))
  process.stdout.write(JSON.stringify(scripts))`

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

/** The guest's own program, where it may be read from inside. */
export interface GuestFiles {
  readonly folder: string
  readonly main: string
  readonly remove: () => void
}

/**
 * Has the guest's program ready as JavaScript: in a published package it lies there as it is; of a checkout, a copy
 * without types is made in a folder of its own, since stripping them would cost each guest a compiler's worth of
 * memory. What services that were killed have left of such folders is removed.
 */
export function prepareGuestFiles(): GuestFiles {
  const source = fileURLToPath(new URL('./guest/main.ts', import.meta.url))
  const home = path.dirname(source)
  if (path.extname(source) === '.js') return { folder: home, main: source, remove: () => {} }
  const parent = realpathSync(tmpdir())
  removeLeftFolders(parent)
  const folder = mkdtempSync(path.join(parent, `${nameFor(process.pid)}-`))
  chmodSync(folder, 0o755)
  const files = readdirSync(home).filter((it) => it.endsWith('.ts') && !it.endsWith('.test.ts'))
  const scripts = withoutTypes(files.map((it) => path.join(home, it)))
  for (const [n, file] of files.entries()) {
    const script = scripts[n]!.replaceAll(OWN_MODULE, '$1.mjs$2')
    writeReadable(path.join(folder, `${path.basename(file, '.ts')}.mjs`), script)
  }
  // Where Node stops looking for what kind of modules these are.
  writeReadable(path.join(folder, 'package.json'), '{}')
  return {
    folder,
    main: path.join(folder, 'main.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Lets every user read the file, whatever the umask of the service. */
function writeReadable(file: string, text: string): void {
  writeFileSync(file, text)
  chmodSync(file, 0o644)
}

/** A module beside, imported or found by its address. */
const OWN_MODULE = /(\b(?:from |new URL\()'\.\/[a-z-]+)\.ts(')/g

/** Removes the folders in `parent` that services of this user have made which do not run any more. */
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
      // Another service has been as quick.
    }
  }
}

/** Ids of processes mean something where they were given: containers may share a folder and not them. */
function nameFor(id: number): string {
  let space = '0'
  try {
    space = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))![0]
  } catch {
    // Not every system has such a thing, and then there is but one.
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
 * Returns what is in `files`, as JavaScript, in their order.
 *
 * By a process of its own, and once: the compiler that strips types stays in memory, and takes 25 MB of it. What it
 * made is kept where Node keeps what it compiled, if it does, so that the next start goes without.
 */
function withoutTypes(files: readonly string[]): readonly string[] {
  const kept = getCompileCacheDir()
  return (stripped ??=
    kept === undefined ? strip(files) : keptOrStripped(files, path.join(kept, 'guest.json')))
}

let stripped: readonly string[] | undefined

/** As `strip()`, unless that was done of the same files by the same Node and is in the file `kept`. */
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
    // A place that cannot be written costs the next start some time.
  }
  return scripts
}

interface StrippedFiles {
  readonly digest: string
  readonly scripts: readonly string[]
}

/** Whoever reads while another writes finds half of it, and makes it anew. */
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

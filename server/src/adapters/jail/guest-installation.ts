import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ReactorLevel } from '../../ports/reactor-runner.ts'
import { prepareGuestFiles, type GuestFiles } from './guest-files.ts'
import { installedPackages, type InstalledPackages } from './packages.ts'
import { canBeReadByAll } from './readable.ts'
import { runtimeFiles } from './runtime-files.ts'

const LAUNCHER = fileURLToPath(new URL('./launch/launch.ts', import.meta.url))

/** Everything that a guest consists of, where the guest can read it. */
export interface GuestInstallation {
  readonly files: GuestFiles
  /** Packages that code may require. */
  readonly packages: InstalledPackages
  /** The program of Node. */
  readonly node: string
  readonly launcher: string
  /** Packages that the launcher requires. */
  readonly launcherPackages: InstalledPackages
  /** Whether each guest gets a user id of its own, which only a service run by root can give it. */
  readonly ownUser: boolean
}

/**
 * Finds what guests consist of. If the service is root, and other users cannot read all of it, returns a private copy that
 * they can, in the first of `parents` that serves, so that no guest has to run as root. Decision 0091.
 *
 * Without a folder for the copy, `ownUser` is false although the service is root.
 */
export function prepareGuestInstallation(
  level: ReactorLevel,
  packages: InstalledPackages,
  bubblewrap: string,
  parents: readonly string[] = [tmpdir(), '/tmp', '/var/tmp'],
): GuestInstallation {
  const launcherPackages = installedPackages(['koffi'], LAUNCHER)
  const files = prepareGuestFiles()
  const here = { files, packages, node: process.execPath, launcher: LAUNCHER, launcherPackages }
  if (process.getuid?.() !== 0 || process.platform !== 'linux' || level === 'portable')
    return { ...here, ownUser: false }
  if (canBeReadByAll(partsOf(here, level, bubblewrap))) return { ...here, ownUser: true }
  files.remove()
  for (const parent of parents.filter(isFitForCopy)) {
    const copy = copyTo(parent, here, level)
    if (copy !== null && canBeReadByAll(partsOf(copy, level, bubblewrap))) {
      return { ...copy, ownUser: true }
    }
    copy?.files.remove()
  }
  return { ...here, files: prepareGuestFiles(), ownUser: false }
}

/** Whether everyone can read what is in `folder`, and only root can replace what root puts there: root runs some of it. */
function isFitForCopy(folder: string): boolean {
  if (!existsSync(folder) || !canBeReadByAll([folder])) return false
  for (let it = realpathSync(folder); ; it = path.dirname(it)) {
    const { uid, mode } = statSync(it)
    if (uid !== 0 || ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)) return false
    if (it === path.dirname(it)) return true
  }
}

/** Of the group, and of all users. */
const OTHERS_WRITE = 0o022
const STICKY = 0o1000

type GuestParts = Omit<GuestInstallation, 'ownUser'>

/** Returns what the process of a guest opens after it has changed its user. */
function partsOf(it: GuestParts, level: ReactorLevel, bubblewrap: string): string[] {
  const parts = [it.node, it.files.folder, ...it.packages.folders]
  if (level !== 'hardened') return parts
  // Bubblewrap has the guest's user from the start.
  const around = [bubblewrap, path.dirname(it.launcher), ...it.launcherPackages.folders]
  return [...parts, ...[...around, ...runtimeFiles(it.node)].filter(existsSync)]
}

/** Returns a copy in `parent`; null if that has no room, cannot be written or lets no program be run. */
function copyTo(parent: string, here: GuestParts, level: ReactorLevel): GuestParts | null {
  let files: GuestFiles | undefined
  try {
    files = prepareGuestFiles(parent)
    return copyInto(files, here, level)
  } catch (error) {
    files?.remove()
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    return null
  }
}

/** Copies to the folder of `files` what not everyone can read; null if no program can be run there. */
function copyInto(files: GuestFiles, here: GuestParts, level: ReactorLevel): GuestParts | null {
  const copy = new ReadableCopy(files.folder)
  const node = canBeReadByAll([here.node]) ? here.node : copy.program(here.node)
  if (node === null) {
    files.remove()
    return null
  }
  const packages = canBeReadByAll(here.packages.folders)
    ? here.packages
    : copy.packages(here.packages)
  const home = path.dirname(here.launcher)
  if (level !== 'hardened' || canBeReadByAll([home, ...here.launcherPackages.folders])) {
    return { ...here, files, packages, node }
  }
  // Both, since one is looked for above the other.
  const launcherPackages = copy.packages(here.launcherPackages)
  const launcher = path.join(copy.folder(home), path.basename(here.launcher))
  copy.text(path.join(path.dirname(launcher), 'package.json'), '{"type":"module"}')
  return { files, packages, node, launcher, launcherPackages }
}

/** Copies with the paths of the originals, so that Node finds the same packages, and with rights for every user to read. */
class ReadableCopy {
  readonly #root: string
  readonly #parent: string

  constructor(parent: string) {
    this.#parent = parent
    this.#root = path.join(parent, 'installation')
  }

  packages({ homes, folders, aliases, links }: InstalledPackages): InstalledPackages {
    for (const it of folders) this.folder(it)
    for (const it of links) {
      const link = this.#at(it)
      this.#makeFolder(path.dirname(link))
      if (!existsSync(link)) symlinkSync(this.#at(realpathSync(it)), link)
    }
    const entries = Object.entries(homes).map(([name, home]) => [name, this.#at(home)] as const)
    return {
      homes: Object.fromEntries(entries),
      folders: folders.map((it) => this.#at(it)),
      aliases: aliases.map((it) => this.#at(it)),
      links: links.map((it) => this.#at(it)),
    }
  }

  /** Returns the copy of a folder. Its links are left out, and what no program reads. */
  folder(from: string): string {
    this.#makeFolder(this.#at(from))
    for (const it of readdirSync(from, { withFileTypes: true })) {
      const file = path.join(from, it.name)
      if (it.isDirectory()) this.folder(file)
      else if (it.isFile() && !UNREAD.test(it.name)) {
        copyFileSync(file, this.#at(file))
        chmodSync(this.#at(file), 0o644)
      }
    }
    return this.#at(from)
  }

  text(file: string, text: string): void {
    writeFileSync(file, text)
    chmodSync(file, 0o644)
  }

  /** Returns a copy of the program; null if the file system lets none be run. */
  program(from: string): string | null {
    const program = path.join(this.#parent, 'node')
    copyFileSync(from, program, constants.COPYFILE_FICLONE)
    chmodSync(program, 0o755)
    return spawnSync(program, ['-v'], { env: {} }).status === 0 ? program : null
  }

  #at(file: string): string {
    return path.join(this.#root, file)
  }

  #makeFolder(folder: string): void {
    if (existsSync(folder)) return
    this.#makeFolder(path.dirname(folder))
    mkdirSync(folder)
    chmodSync(folder, 0o755)
  }
}

/** Half of what packages hold. */
const UNREAD = /\.(?:map|md|d\.[cm]?ts)$/

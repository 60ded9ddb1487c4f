/** The machine that the program runs on, as its kernel reports it. */
import { access, constants, readdir, readFile, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

export interface HostMachine {
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Numeric id of the user that this process runs as; null where there is none. */
  readonly user: number | null
  /** The version of Node, without the `v`. */
  readonly nodeVersion: string
  readonly disk: (path: string) => Promise<DiskFigures>
  /** Memory that a process may still use, and in total, within the limits of a container; null if unknown. */
  readonly memory: () => Promise<MemoryFigures | null>
  /** The open file limit of a process, and its number of open files; null if unknown. */
  readonly openFiles: (pid: number | 'self') => Promise<OpenFileFigures | null>
  /** The process that has locked the file at `path` exclusively; null if none is known. */
  readonly lockHolder: (path: string) => Promise<number | null>
  /** The folder for temporary files; `flaw` says why no file can be created in it, and is null if one can. */
  readonly temporaryFolder: () => Promise<{ readonly path: string; readonly flaw: string | null }>
}

export interface DiskFigures {
  /** Available to ordinary users. */
  readonly freeBytes: number
  /** Null if the file system does not count them. */
  readonly freeFiles: number | null
  /** Magic number of the file system. Source: statfs(2). */
  readonly type: number
}

export interface MemoryFigures {
  readonly availableBytes: number
  readonly totalBytes: number
}

export interface OpenFileFigures {
  readonly limit: number
  /** Null if the process belongs to another user, which hides it. */
  readonly open: number | null
}

/** This machine. Everything that only Linux reports is unknown elsewhere. */
export const LOCAL_MACHINE: HostMachine = {
  now: () => Date.now(),
  user: process.geteuid?.() ?? null,
  nodeVersion: process.versions.node,
  disk: async (path) => {
    const { bavail, bsize, files, ffree, type } = await statfs(path)
    return { freeBytes: bavail * bsize, freeFiles: files === 0 ? null : ffree, type }
  },
  memory: async () => {
    const text = await readText('/proc/meminfo')
    const [total, available] = [kibIn(text, 'MemTotal'), kibIn(text, 'MemAvailable')]
    if (total === null || available === null) return null
    // Within a control group the kernel's figures are those of the whole machine.
    const limit = process.constrainedMemory()
    const limited = limit > 0 && limit < total
    if (!limited) return { availableBytes: available, totalBytes: total }
    return { availableBytes: Math.min(available, process.availableMemory()), totalBytes: limit }
  },
  openFiles: async (pid) => {
    const text = await readText(`/proc/${pid}/limits`)
    const limit = /^Max open files\s+(\d+|unlimited)/m.exec(text ?? '')?.[1]
    if (limit === undefined) return null
    const open = await readdir(`/proc/${pid}/fd`).catch(() => null)
    return {
      limit: limit === 'unlimited' ? Infinity : Number(limit),
      open: open === null ? null : open.length,
    }
  },
  lockHolder: async (path) => {
    const found = await identityOf(path)
    if (found === null) return null
    const locks = (await readText('/proc/locks')) ?? ''
    for (const line of locks.split('\n')) {
      const [, kind, , access, pid, file = '', first, last] = line.trim().split(/\s+/)
      const exclusive = Number(first) <= SHARED_FIRST && Number(last) >= SHARED_LAST
      if (kind !== 'POSIX' || access !== 'WRITE' || !exclusive) continue
      const [major, minor, inode] = file.split(':')
      if (inode !== String(found.ino)) continue
      const device = [major, minor].map((it) => BigInt(`0x${it}`))
      if (device[0] === majorOf(found.dev) && device[1] === minorOf(found.dev)) return Number(pid)
      // Some file systems (overlayfs, btrfs) report another device here than to stat(); on the others it is another file.
      if (await hasOpen(Number(pid), found)) return Number(pid)
    }
    return null
  },
  temporaryFolder: async () => {
    const path = tmpdir()
    try {
      await access(path, constants.W_OK | constants.X_OK)
      return { path, flaw: null }
    } catch (error) {
      return { path, flaw: (error as NodeJS.ErrnoException).code ?? String(error) }
    }
  },
}

/** A write lock on these bytes is exclusive use of an SQLite file. Source: sqlite.org/fileformat2.html, "The Lock-Byte Page". */
const SHARED_FIRST = 2 ** 30 + 2
const SHARED_LAST = 2 ** 30 + 511

interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
}

async function identityOf(path: string): Promise<FileIdentity | null> {
  return await stat(path, { bigint: true }).catch(() => null)
}

/** Whether the process is seen to have the file open; another user's hides its files. Follows each link as the process would. */
async function hasOpen(pid: number, { dev, ino }: FileIdentity): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  for (const name of await readdir(folder).catch(() => [])) {
    const it = await identityOf(`${folder}/${name}`)
    if (it?.dev === dev && it.ino === ino) return true
  }
  return false
}

/** The parts of a device number. Source: glibc, sys/sysmacros.h; musl has the same. */
function majorOf(dev: bigint): bigint {
  return ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn)
}

function minorOf(dev: bigint): bigint {
  return (dev & 0xffn) | ((dev >> 12n) & ~0xffn & 0xffff_ffffn)
}

async function readText(path: string): Promise<string | null> {
  return await readFile(path, 'latin1').catch(() => null)
}

/** Returns bytes. */
function kibIn(text: string | null, name: string): number | null {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')?.[1]
  return found === undefined ? null : Number(found) * 1024
}

import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readSync } from 'node:fs'

/**
 * Returns the files that this Node consists of, under the names the dynamic loader uses: program, loader, libraries.
 * Throws when the program is not a 64-bit ELF file.
 */
export function runtimeFiles(program: string = process.execPath): string[] {
  const loader = loaderOf(program)
  const files = new Set([program])
  if (loader !== null) {
    files.add(loader)
    const listed = execFileSync(loader, ['--list', program], { encoding: 'utf8', env: {} })
    for (const [, file] of listed.matchAll(/(\/\S+) \(0x/g)) files.add(file!)
  }
  if (existsSync(CACHE)) files.add(CACHE)
  return [...files]
}

const CACHE = '/etc/ld.so.cache'

/** Program header with the path of the loader. */
const PT_INTERP = 3

/**
 * Returns the loader that the program names, or null for a static program.
 *
 * Source: the System V ABI, object files.
 */
function loaderOf(program: string): string | null {
  const descriptor = openSync(program, 'r')
  try {
    const bytes = (at: number, length: number): Buffer => {
      const buffer = Buffer.alloc(length)
      readSync(descriptor, buffer, 0, length, at)
      return buffer
    }
    const header = bytes(0, 64)
    if (header.readUInt32BE(0) !== 0x7f454c46 || header[4] !== 2) {
      throw new Error(`${program} is no program of 64 bits`)
    }
    const [at, size, count] = [
      Number(header.readBigUInt64LE(32)),
      header.readUInt16LE(54),
      header.readUInt16LE(56),
    ]
    for (let it = 0; it < count; it++) {
      const header = bytes(at + it * size, size)
      if (header.readUInt32LE(0) !== PT_INTERP) continue
      const [from, length] = [8, 32].map((it) => Number(header.readBigUInt64LE(it)))
      return bytes(from!, length! - 1).toString()
    }
    return null
  } finally {
    closeSync(descriptor)
  }
}

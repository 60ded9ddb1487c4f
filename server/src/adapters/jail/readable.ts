import { statSync } from 'node:fs'
import path from 'node:path'

/**
 * Whether every user can read all of `files`. A guest that runs as an unused user needs that, and a service inside a
 * private home directory does not offer it.
 */
export function canBeReadByAll(files: readonly string[]): boolean {
  return files.every((file) => {
    for (let it = path.dirname(file); ; it = path.dirname(it)) {
      if ((statSync(it).mode & OTHERS_EXECUTE) === 0) return false
      if (it === path.dirname(it)) break
    }
    return (statSync(file).mode & OTHERS_READ) !== 0
  })
}

const OTHERS_READ = 0o4
const OTHERS_EXECUTE = 0o1

import { statSync } from 'node:fs'
import path from 'node:path'

/**
 * Whether a user who is nobody in particular gets to all of `files`: a guest that becomes one must still find
 * what it is made of, and does not when the service lies in somebody's closed home.
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

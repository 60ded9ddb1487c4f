import { spawnSync } from 'node:child_process'
import { findBubblewrap } from '../../src/adapters/jail/hardened.ts'

/**
 * Why the level `hardened` cannot be had here, or false: for tests of it, which say so where they are left out. Tried
 * by a user who is nobody in particular, as guests of a service run by root are.
 */
export function noBubblewrap(): string | false {
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const args = ['--unshare-all', '--unshare-user', '--ro-bind', '/', '/', '/bin/true']
  const { status, stderr, error } = spawnSync(findBubblewrap(), args, {
    encoding: 'utf8',
    ...nobody,
  })
  if (error !== undefined) return `bubblewrap cannot be run here: ${error.message}`
  return status === 0 ? false : `bubblewrap is refused namespaces here: ${stderr.trim()}`
}

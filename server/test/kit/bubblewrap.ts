import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { findBubblewrap } from '../../src/adapters/jail/hardened.ts'
import { installing } from './programs.ts'

/**
 * Returns the reason this machine cannot provide the level `hardened`, or false if it can: for the option `skip` of its
 * tests. Tries it as guests do: with an empty environment and, when run by root, as another user.
 */
export function noBubblewrap(): string | false {
  const program = findBubblewrap()
  if (!existsSync(program)) return installing(['bwrap'])
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const args = ['--unshare-all', '--unshare-user', '--ro-bind', '/', '/', '/bin/true']
  const options = { encoding: 'utf8', env: {}, ...nobody } as const
  const { status, stderr, error } = spawnSync(program, args, options)
  if (error !== undefined) return `bwrap must be allowed to run: ${error.message}`
  return status === 0 ? false : `bwrap must be allowed to create namespaces: ${stderr.trim()}`
}

import { spawn } from 'node:child_process'
import { guestIs, type GuestFileAccess, type Walls } from './walls.ts'

/**
 * No walls of the kernel: a process of its own that Node itself keeps from files, programs and threads, and that code
 * of ours keeps from the network. Node says of the first that code which means harm gets around it; so does code
 * get around the second. Ours: decision 0034.
 */
export function portable({ main, readable }: GuestFileAccess): Walls {
  const allowed = readable.map((it) => `--allow-fs-read=${it}`)
  return {
    begin: (flags) => {
      const child = spawn(process.execPath, [...flags, ...FLAGS, ...allowed, main], {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
        env: {},
      })
      return { child, guest: guestIs(child) }
    },
  }
}

/** The permission model of this Node does not know of its database, which opens any file. */
const FLAGS = ['--permission', '--no-experimental-sqlite']

import { spawn } from 'node:child_process'
import path from 'node:path'
import { guestIs, type GuestFileAccess, type Walls } from './walls.ts'

/**
 * The `portable` level: no kernel walls. Node's permission model keeps the process from files, programs and threads,
 * and our code in the guest keeps it from the network. Malicious code can bypass both; Node documents this for its
 * permission model. Decision 0034.
 */
export function portable({ name, main, readable }: GuestFileAccess): Walls {
  const allowed = readable.map((it) => `--allow-fs-read=${it}`)
  return {
    begin: (flags) => {
      const child = spawn(process.execPath, [...flags, ...FLAGS, ...allowed, main], {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
        env: {},
        argv0: name,
        // Not the folder that the service was started in, which the code could see.
        cwd: path.parse(main).root,
      })
      return { child, guest: guestIs(child) }
    },
  }
}

/** This Node's permission model does not cover node:sqlite, which opens any file. */
const FLAGS = ['--permission', '--no-experimental-sqlite']

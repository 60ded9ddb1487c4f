import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { REACTOR_DATA_BYTES_MAX } from '../../base/limits.ts'
import type { LaunchPlan } from './launch/launch-plan.ts'
import { canBeReadByAll } from './readable.ts'
import { guestIs, type Inside, type Walls } from './walls.ts'

export const LAUNCHER = fileURLToPath(new URL('./launch/launch.ts', import.meta.url))

/** Landlock, a filter of system calls, and limits: walls that take no privilege. Ours: decision 0030. */
export function jailed({ main, readable }: Inside): Walls {
  const ownUser = process.getuid?.() === 0 && canBeReadByAll([process.execPath, ...readable])
  return {
    begin: (flags) => {
      const plan: LaunchPlan = {
        parent: process.pid,
        arguments: [...flags, main],
        variables: [],
        readable,
        ownUser,
        runtime: null,
        dataBytesMax: REACTOR_DATA_BYTES_MAX,
      }
      const child = spawn(process.execPath, [LAUNCHER, JSON.stringify(plan)], {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
        env: {},
      })
      return { child, guest: guestIs(child) }
    },
  }
}

import { spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { REACTOR_DATA_BYTES_MAX } from '../../base/limits.ts'
import type { LaunchPlan } from './launch/launch-plan.ts'
import { canBeReadByAll } from './readable.ts'
import { guestIs, type GuestFileAccess, type Walls } from './walls.ts'

export const LAUNCHER = fileURLToPath(new URL('./launch/launch.ts', import.meta.url))

/** The `jail` level: Landlock, a seccomp filter and resource limits, none of which need privileges. Decision 0030. */
export function jailed({ name, main, readable }: GuestFileAccess): Walls {
  const ownUser = process.getuid?.() === 0 && canBeReadByAll([process.execPath, ...readable])
  return {
    begin: (flags) => {
      const plan: LaunchPlan = {
        parent: process.pid,
        name,
        arguments: [...flags, main],
        variables: [],
        readable,
        ownUser,
        runtime: null,
        dataBytesMax: REACTOR_DATA_BYTES_MAX,
      }
      const child = spawn(process.execPath, [LAUNCHER, JSON.stringify(plan)], {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
        env: whereCompiled(),
      })
      return { child, guest: guestIs(child) }
    },
  }
}

/**
 * Environment of the launcher, not of the guest. In a checkout, stripping and compiling the launcher takes two fifths
 * of a guest's start.
 */
function whereCompiled(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir()
  // NODE_COMPILE_CACHE is the parent folder: Node adds a subfolder per version.
  return cache === undefined ? {} : { NODE_COMPILE_CACHE: path.dirname(cache) }
}

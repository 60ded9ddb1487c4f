import { spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import path from 'node:path'
import { REACTOR_DATA_BYTES_MAX } from '../../base/limits.ts'
import type { LaunchPlan } from './launch/launch-plan.ts'
import { guestIs, type GuestFileAccess, type Walls } from './walls.ts'

/** The `jail` level: Landlock, a seccomp filter and resource limits, none of which need privileges. Decision 0030. */
export function jailed({ name, main, readable, node, launcher, ownUser }: GuestFileAccess): Walls {
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
      const child = spawn(node, [launcher, JSON.stringify(plan)], {
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

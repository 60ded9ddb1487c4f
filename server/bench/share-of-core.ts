/** Gives processes a share of a core each, as if each were on a small machine of its own. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The kernel's control groups for processors, in their first version and in the second. Source: kernel.org, cgroups. */
const FIRST = '/sys/fs/cgroup/cpu'
const SECOND = '/sys/fs/cgroup'

/** Short, so a process that has used up its share does not pause for long. */
const PERIOD_US = 10_000

/** A group whose processes have no more than that together. */
export interface Share {
  readonly add: (pid: number) => void
  /** Takes the group away, when its processes are gone. */
  readonly end: () => void
}

/** Null where this user, or this system, does not let us have one: it takes root on Linux. */
export function shareOfCore(share: number): Share | null {
  const first = existsSync(join(FIRST, 'cpu.cfs_quota_us'))
  const folder = join(first ? FIRST : SECOND, `symbolon-bench-${process.pid}-${made++}`)
  const quota = Math.round(PERIOD_US * share)
  try {
    mkdirSync(folder)
    if (first) {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), `${PERIOD_US}`)
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), `${quota}`)
    } else writeFileSync(join(folder, 'cpu.max'), `${quota} ${PERIOD_US}`)
  } catch {
    return null
  }
  return {
    add: (pid) => writeFileSync(join(folder, 'cgroup.procs'), `${pid}`),
    end: () => rmdirSync(folder),
  }
}

let made = 0

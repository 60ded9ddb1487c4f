import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { REACTOR_DATA_BYTES_MAX } from '../../base/limits.ts'
import { unusedId } from './launch/identity.ts'
import { GUEST_HOST, type LaunchPlan } from './launch/launch-plan.ts'
import { runtimeFiles } from './runtime-files.ts'
import type { GuestFileAccess, Walls } from './walls.ts'

/** Where distributions install bubblewrap. */
const PLACES = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap']

/** Descriptor on which bubblewrap reports the guest's process id. */
const STATUS = 4
const STATUS_CHARS_MAX = 4096

/**
 * The `hardened` level: the jail inside namespaces created by the bubblewrap at `program`. The guest sees no other
 * process, no network, and only the files that it consists of. Decision 0033.
 */
export function hardened(inside: GuestFileAccess, program = findBubblewrap()): Walls {
  let world: BubblewrapSandbox | null = null
  return {
    begin: (flags) => {
      world ??= worldAround(inside)
      const { runtime } = world
      const plan: LaunchPlan = {
        parent: 0,
        name: inside.name,
        arguments: [...flags, inside.main],
        variables: [],
        readable: inside.readable,
        // The user is changed before bubblewrap starts.
        ownUser: false,
        runtime,
        dataBytesMax: REACTOR_DATA_BYTES_MAX,
      }
      const id = inside.ownUser ? unusedId(randomInt(2 ** 27)) : 0
      const args = [...world.arguments, inside.node, inside.launcher, JSON.stringify(plan)]
      const child = spawn(program, args, {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
        env: {},
        // Without another user to change to, the guest keeps the service's.
        ...(id > 0 && { uid: id, gid: id }),
      })
      return { child, guest: guestOf(child.stdio[STATUS] as Readable | undefined) }
    },
  }
}

/** The environment of every guest. */
interface BubblewrapSandbox {
  /** The files of the Node runtime. */
  readonly runtime: readonly string[]
  /** Arguments of bubblewrap. */
  readonly arguments: readonly string[]
}

function worldAround(inside: GuestFileAccess): BubblewrapSandbox {
  const { readable, aliases, launcher, launcherPackages } = inside
  const runtime = runtimeFiles(inside.node)
  const folders = new Set([path.dirname(launcher), ...launcherPackages.folders, ...readable])
  const visible = [...runtime, ...folders]
  const names = new Set([...launcherPackages.aliases, ...aliases])
  return {
    runtime: [...runtime, '/dev/null'],
    arguments: [
      ...NAMESPACES,
      ...visible.flatMap((it) => ['--ro-bind', it, it]),
      ...[...names].flatMap((it) => ['--symlink', realpathSync(it), it]),
      '--remount-ro',
      '/',
    ],
  }
}

const NAMESPACES = [
  '--unshare-all',
  // `--unshare-all` omits the user namespace when run by root.
  '--unshare-user',
  '--die-with-parent',
  // The guest is the namespace's only process: the child seen outside is the guest, and the namespace ends with it.
  '--as-pid-1',
  '--new-session',
  '--cap-drop',
  'ALL',
  '--hostname',
  GUEST_HOST,
  '--chdir',
  '/',
  '--info-fd',
  String(STATUS),
  '--dev-bind',
  '/dev/null',
  '/dev/null',
]

/** Returns the path of bubblewrap, or the path where it is usually installed. */
export function findBubblewrap(): string {
  return PLACES.find(existsSync) ?? PLACES[0]!
}

/** Reads the guest's id from bubblewrap, and makes it the kernel's first choice to kill when memory runs out. */
async function guestOf(status: Readable | undefined): Promise<number> {
  let said = ''
  for await (const chunk of status ?? []) {
    said += chunk
    if (said.length > STATUS_CHARS_MAX) throw new Error('bubblewrap says more than it should')
  }
  // It ended before it reported anything; stderr has the reason.
  if (said === '') return await never()
  const { 'child-pid': id } = JSON.parse(said)
  if (!Number.isInteger(id)) throw new Error('bubblewrap does not say who the guest is')
  try {
    writeFileSync(`/proc/${id}/oom_score_adj`, '1000')
    return id
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return await never()
    throw error
  }
}

function never(): Promise<never> {
  return new Promise(() => {})
}

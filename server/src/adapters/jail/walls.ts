import type { ChildProcess } from 'node:child_process'
import type { InstalledPackages } from './packages.ts'

/** Starts guests at one level, behind the walls of that level. */
export interface Walls {
  /** Starts a process in which Node, with `flags`, runs the guest's program, with its pipe at descriptor CHANNEL. */
  begin(flags: readonly string[]): StartedGuest
}

export interface StartedGuest {
  readonly child: ChildProcess
  /** Resolves with the process id of the guest itself, which is `child` or a child of it. */
  readonly guest: Promise<number>
}

/** The files that the walls expose. */
export interface GuestFileAccess {
  /** The name that the process is started under, which its code can see. */
  readonly name: string
  /** The guest's program. */
  readonly main: string
  /** The only files and folders that the guest may read. */
  readonly readable: readonly string[]
  /** Symbolic links to some of them. */
  readonly aliases: readonly string[]
  /** The program of Node. */
  readonly node: string
  readonly launcher: string
  /** Folders of the packages that the launcher requires, and symbolic links to some of them. */
  readonly launcherPackages: Pick<InstalledPackages, 'folders' | 'aliases'>
  /** Whether each guest gets a user id of its own. */
  readonly ownUser: boolean
}

/** Descriptor of the pipe between host and guest. */
export const CHANNEL = 3

/** For walls without a process of their own: the guest is `child`. */
export function guestIs(child: ChildProcess): Promise<number> {
  // Without an id it never started; its `error` event reports that.
  return child.pid === undefined ? new Promise(() => {}) : Promise.resolve(child.pid)
}

import type { ChildProcess } from 'node:child_process'

/** How guests are begun at one level, and what holds them. */
export interface Walls {
  /** Begins a process in which Node, with `flags`, runs the guest's program and finds its channel at CHANNEL. */
  begin(flags: readonly string[]): StartedGuest
}

export interface StartedGuest {
  readonly child: ChildProcess
  /** Resolves with the id of the guest itself: of `child`, or of a child of that. */
  readonly guest: Promise<number>
}

/** What walls are built around. */
export interface GuestFileAccess {
  /** The guest's program. */
  readonly main: string
  /** Files and folders that it may read, and no others. */
  readonly readable: readonly string[]
  /** Other ways by which it gets to some of them. */
  readonly aliases: readonly string[]
}

/** The descriptor over which host and guest speak. */
export const CHANNEL = 3

/** For walls that need no process of their own: the guest is `child`. */
export function guestIs(child: ChildProcess): Promise<number> {
  // Without an id it never began, and says so itself.
  return child.pid === undefined ? new Promise(() => {}) : Promise.resolve(child.pid)
}

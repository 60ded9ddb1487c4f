import type { HiddenPath } from './hidden-paths.ts'

/** Sent to the guest once, before any code. */
export interface GuestSetUp {
  /** Built-in modules that the code may require, without `node:`. */
  readonly builtIns: readonly string[]
  /** Packages that it may require, and the `node_modules` folder of each. */
  readonly packages: Readonly<Record<string, string>>
  /** Packages that are not installed, and the package that the operator would have to install for each. */
  readonly notInstalled: Readonly<Record<string, string>>
  /** Paths that the code must not come to see. */
  readonly hidden: readonly HiddenPath[]
  /** `false` lets code require any module, to test that the walls hold without these checks. */
  readonly checks: boolean
  /** Whether the guest itself must refuse sockets, because no wall does. */
  readonly withoutSockets: boolean
  /** Certificate authorities in PEM, trusted in addition to those bundled with Node. */
  readonly authorities: readonly string[]
  /** Limit on the output of one run; 0 for none. */
  readonly outputBytesMax: number
  readonly resultBytesMax: number
  readonly errorBytesMax: number
}

/** Sent to the guest to start a run. */
export interface GuestRun {
  readonly run: number
  readonly apiKey: string | null
}

/** The target of a connection that the guest requests. */
export interface ConnectionTarget {
  readonly host: string
  readonly port: number
}

/** Stands for the service itself: a port of the guest's own machine that nothing listens on. */
export const SERVICE: ConnectionTarget = { host: 'localhost', port: 1 }

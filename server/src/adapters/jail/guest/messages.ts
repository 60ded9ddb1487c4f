/** What the guest is told once, before any code. */
export interface GuestSetUp {
  /** Built-in modules that the code may require, without `node:`. */
  readonly builtIns: readonly string[]
  /** Packages that it may require, and the folder `node_modules` that has each. */
  readonly packages: Readonly<Record<string, string>>
  /** Without it anything may be required: for whoever wants to see that the walls hold alone. */
  readonly checks: boolean
  /** Whether the guest itself has to refuse what would make a socket, because no wall does. */
  readonly withoutSockets: boolean
  /** Certificates of authorities, as PEM, trusted besides those that Node brings along. */
  readonly authorities: readonly string[]
  /** How much of its output is wanted of one run; 0 for none. */
  readonly outputBytesMax: number
  readonly resultBytesMax: number
  readonly errorBytesMax: number
}

/** What the guest is told to begin a run. */
export interface GuestRun {
  readonly run: number
  readonly apiKey: string | null
}

/** Where the guest wants a connection to. */
export interface ConnectionTarget {
  readonly host: string
  readonly port: number
}

/** What stands for the service itself: a port of the guest's own machine that nobody uses. */
export const SERVICE: ConnectionTarget = { host: 'localhost', port: 1 }

import type { Json } from '../base/json.ts'
import type { Sensitive } from '../base/sensitive.ts'

/**
 * Runs tenants' code in a sandbox: it can use only its inputs, and everything it does ends with it.
 *
 * Code of one tenant, reactor and version never shares a process with any other.
 */
export interface ReactorRunner {
  /** The strength of the sandbox; null if it is insufficient and nothing is run. */
  readonly level: ReactorLevel | null

  /** The user whose rights the code has, which the sandbox takes away further; null if nothing is run, or the system has no users. */
  readonly guestUser: GuestUser | null

  /** Whether a run of the tenant would begin now, or be queued. */
  hasCapacity(tenantId: string): boolean

  /**
   * Runs the code once. If it does not begin at once, `admit` is called when it could, before anything of the run leaves the
   * service; a rejection ends the run unstarted, and is the rejection of run().
   *
   * Rejects with RunnerUnavailable if it cannot even be started.
   */
  run(run: SandboxRun, admit?: Admit): Promise<ReactorOutcome>

  /** Stops all runs. */
  close(): Promise<void>
}

/** Decides whether a run that had to wait may begin. Decision 0080. */
export type Admit = () => Promise<void>

export const REACTOR_LEVELS = ['jail', 'hardened', 'portable'] as const
export type ReactorLevel = (typeof REACTOR_LEVELS)[number]

/** `own`: each process has a user id that no other process has. */
export type GuestUser = 'own' | 'service' | 'root'

/** One run of a reactor's code. Not a job: a job is a queued invocation, and running it is one of its stages. */
export interface SandboxRun {
  readonly tenantId: string
  readonly reactorId: string
  /** Differs whenever the code, or anything else that a warm process may have kept, has changed. */
  readonly version: string
  readonly code: string
  /** Values of `req.args` and `req.configuration`, as JSON text. */
  readonly args: Sensitive<string>
  readonly configuration: Sensitive<string>
  /** The key of the reactor's application, valid during the run; null without an application. */
  readonly apiKey: Sensitive<string> | null
  /** Destinations the code may send to; null for all that the egress gateway allows. */
  readonly destinations: readonly string[] | null
  /** Counted from the start of the code; then the process is killed. */
  readonly timeoutMs: number
}

export type ReactorOutcome =
  | {
      readonly kind: 'returned'
      /** JSON in UTF-8, parsed and written again by the service; `null` for values that JSON cannot represent. */
      readonly result: Sensitive<Buffer>
      /** Where in the result these members of it are, each from its first byte to the one after its last; null if absent. */
      readonly raw: readonly [from: number, to: number] | null
      readonly tokenize: readonly [from: number, to: number] | null
    }
  /** The code returned, but the service could not give back the same value: decision 0010. */
  | { readonly kind: 'unsendable' }
  | {
      readonly kind: 'threw'
      readonly error: ThrownError
      /** Where in the code; null if that is unknown. */
      readonly position: CodePosition | null
    }
  /** The code failed before it exported a function; the message has no path of the installation, and no stack. */
  | {
      readonly kind: 'no-function'
      readonly message: string
      readonly position: CodePosition | null
    }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'out-of-memory' }
  /** The process ended without a result, or sent an invalid one. */
  | { readonly kind: 'died' }

/** A place in the code of a reactor: one that exists, both numbers counted from 1. */
export interface CodePosition {
  readonly line: number
  readonly column: number
}

export function describePosition({ line, column }: CodePosition): string {
  return `line ${line}, column ${column}`
}

/** The error that the code threw, reduced to JSON by untrusted code: every member may be anything. */
export interface ThrownError {
  readonly name: Json
  readonly message: Json
  readonly status: Json
  readonly errors: Json
  readonly headers: Json
  readonly body: Json
  /** Replaces a `body` of bytes, in base64; null for any other. */
  readonly bytes: Json
}

/** No process is available: the sandbox does not work, or no process can be started. */
export class RunnerUnavailable extends Error {
  override readonly name: string = 'RunnerUnavailable'
}

/** Too many runs are in progress, or queued. */
export class RunnerBusy extends RunnerUnavailable {
  override readonly name = 'RunnerBusy'
}

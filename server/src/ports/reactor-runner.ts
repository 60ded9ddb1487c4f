import type { Json } from '../base/json.ts'
import type { Sensitive } from '../base/sensitive.ts'

/**
 * Runs tenants' own code, behind walls: what it gets is what it is handed, what it does ends with it.
 *
 * Code of one tenant, reactor and version never shares a process with any other.
 */
export interface ReactorRunner {
  /** How strong the walls are; null when there are none good enough and nothing is run. */
  readonly level: ReactorLevel | null

  /** Whether a run of the tenant would begin now, or be queued. */
  hasCapacity(tenantId: string): boolean

  /** Runs the code once. Rejects with RunnerUnavailable when it cannot even be begun. */
  run(job: ReactorJob): Promise<ReactorOutcome>

  /** Ends everything that runs. */
  close(): Promise<void>
}

export const REACTOR_LEVELS = ['jail', 'hardened', 'portable'] as const
export type ReactorLevel = (typeof REACTOR_LEVELS)[number]

export interface ReactorJob {
  readonly tenantId: string
  readonly reactorId: string
  /** Differs whenever code or anything else that a warm process may have kept has changed. */
  readonly version: string
  readonly code: string
  /** What becomes `req.args` and `req.configuration`, as JSON text. */
  readonly args: Sensitive<string>
  readonly configuration: Sensitive<string>
  /** The key of the reactor's application, good while the run lasts; null without an application. */
  readonly apiKey: Sensitive<string> | null
  /** Where the code may send; null for wherever the egress gateway lets anything go. */
  readonly destinations: readonly string[] | null
  /** From when the code begins; after it the process is killed. */
  readonly timeoutMs: number
}

export type ReactorOutcome =
  /** As JSON text; `null` for what JSON cannot say. */
  | { readonly kind: 'returned'; readonly result: Sensitive<string> }
  | { readonly kind: 'threw'; readonly error: ThrownError }
  /** It does not compile, or exports no function; the message has no path and no stack. */
  | { readonly kind: 'no-function'; readonly message: string }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'out-of-memory' }
  /** The process ended without an answer, or said what is no answer. */
  | { readonly kind: 'died' }

/** What the code threw, reduced to JSON by code nobody trusts: every member may be anything. */
export interface ThrownError {
  readonly name: Json
  readonly message: Json
  readonly status: Json
  readonly errors: Json
  readonly headers: Json
  readonly body: Json
}

/** No process can be had: the walls do not stand, or none can be started. */
export class RunnerUnavailable extends Error {
  override readonly name: string = 'RunnerUnavailable'
}

/** Too many run, or wait. */
export class RunnerBusy extends RunnerUnavailable {
  override readonly name = 'RunnerBusy'
}

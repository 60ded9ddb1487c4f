import type { Json } from '../../src/base/json.ts'
import { outcomeOf, readResult } from '../../src/adapters/jail/read-result.ts'
import type {
  CodePosition,
  SandboxRun,
  ReactorLevel,
  ReactorOutcome,
  ReactorRunner,
  ThrownError,
} from '../../src/ports/reactor-runner.ts'

/** The input of the code, in plaintext. */
export interface Ran extends Omit<SandboxRun, 'args' | 'configuration' | 'apiKey'> {
  readonly args: Json
  readonly configuration: Json
  readonly apiKey: string | null
}

/** A runner that runs nothing: records its input, and ends as tests tell it. */
export interface StillRunner extends ReactorRunner {
  level: ReactorLevel | null
  hasCapacity: (tenantId: string) => boolean
  readonly ran: Ran[]
  /** Returns when a run gets its slot; null, if it has one at once, unless replaced. */
  slot: () => Promise<void> | null
  /** Returns the outcome; the code's input, as `raw`, unless replaced. */
  behave: (ran: Ran) => ReactorOutcome | Promise<ReactorOutcome>
}

export function stillRunner(): StillRunner {
  const runner: StillRunner = {
    level: 'jail',
    guestUser: 'own',
    ran: [],
    hasCapacity: () => true,
    slot: () => null,
    behave: ({ args }) => returned({ raw: args }),
    run: async ({ args, configuration, apiKey, ...run }, admit) => {
      const slot = runner.slot()
      if (slot !== null) {
        await slot
        await admit?.()
      }
      const ran = {
        ...run,
        args: JSON.parse(args.reveal()) as Json,
        configuration: JSON.parse(configuration.reveal()) as Json,
        apiKey: apiKey === null ? null : apiKey.reveal(),
      }
      runner.ran.push(ran)
      return await runner.behave(ran)
    },
    close: async () => undefined,
  }
  return runner
}

/** Returns the outcome of code that returns `result`. */
export function returned(result: Json): ReactorOutcome {
  return outcomeOf(readResult(Buffer.from(JSON.stringify(result))))
}

/** Returns the outcome of code that throws `error` at `position`. */
export function threw(
  error: Partial<ThrownError>,
  position: CodePosition | null = null,
): ReactorOutcome {
  const nothing = { name: null, message: null, status: null, errors: null, headers: null }
  return { kind: 'threw', error: { ...nothing, body: null, bytes: null, ...error }, position }
}

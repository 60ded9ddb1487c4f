import type { Json } from '../../src/base/json.ts'
import { Sensitive } from '../../src/base/sensitive.ts'
import type {
  ReactorJob,
  ReactorLevel,
  ReactorOutcome,
  ReactorRunner,
  ThrownError,
} from '../../src/ports/reactor-runner.ts'

/** What code was given, in the clear. */
export interface Ran extends Omit<ReactorJob, 'args' | 'configuration' | 'apiKey'> {
  readonly args: Json
  readonly configuration: Json
  readonly apiKey: string | null
}

/** A runner that runs nothing: it remembers what it was handed and ends as it was told to. */
export interface StillRunner extends ReactorRunner {
  level: ReactorLevel | null
  hasCapacity: (tenantId: string) => boolean
  readonly ran: Ran[]
  /** Says what comes of it; what the code was given, as `raw`, unless replaced. */
  behave: (ran: Ran) => ReactorOutcome | Promise<ReactorOutcome>
}

export function stillRunner(): StillRunner {
  const runner: StillRunner = {
    level: 'jail',
    ran: [],
    hasCapacity: () => true,
    behave: ({ args }) => returned({ raw: args }),
    run: async ({ args, configuration, apiKey, ...job }) => {
      const ran = {
        ...job,
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

/** What comes of code that returns this. */
export function returned(result: Json): ReactorOutcome {
  return { kind: 'returned', result: new Sensitive(JSON.stringify(result)) }
}

/** What comes of code that throws this. */
export function threw(error: Partial<ThrownError>): ReactorOutcome {
  const nothing = { name: null, message: null, status: null, errors: null, headers: null }
  return { kind: 'threw', error: { ...nothing, body: null, ...error } }
}

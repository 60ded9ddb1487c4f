import type { Duplex } from 'node:stream'
import { JailRunner } from '../adapters/jail/jail-runner.ts'
import type { Egress } from '../world/egress.ts'
import type { Log } from '../world/log.ts'

/** What reactors need of the rest of the world. */
export interface RunnerSettings {
  readonly egress: Egress
  readonly log: Log
  /** Certificates of authorities, as PEM, trusted besides the public ones. */
  readonly authorities: readonly string[]
  /** A connection to the service itself, for code of a tenant; null before it serves. */
  readonly connect: (tenantId: string) => Duplex | null
}

/** Opens the jail, and says in the log why there is none where the walls do not stand. */
export async function openRunner(settings: RunnerSettings): Promise<JailRunner> {
  const { egress, log, authorities, connect } = settings
  const runner = await JailRunner.open({
    packages: [],
    authorities,
    waysOut: {
      toHost: ({ tenantId, destinations }, host, port) =>
        egress.tunnel(tenantId, host, port, destinations),
      toService: async ({ tenantId }) => {
        const connection = connect(tenantId)
        if (connection === null) throw new Error('The service does not serve yet')
        return connection
      },
    },
  })
  if (runner.flaw !== null) log.warn('no_reactors', { reason: runner.flaw })
  return runner
}

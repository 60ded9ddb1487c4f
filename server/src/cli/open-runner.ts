import type { Duplex } from 'node:stream'
import { MODULES_PACKAGE } from '../adapters/jail/allowed-modules.ts'
import { JailRunner } from '../adapters/jail/jail-runner.ts'
import { WALLS_TEST_MS_MAX } from '../adapters/jail/self-test.ts'
import type { InProcessCaller } from '../base/access.ts'
import { REACTOR_LOG_LINE_CHARS_MAX } from '../base/limits.ts'
import type { Egress } from '../ports/egress.ts'
import type { Log } from '../ports/log.ts'
import type { ReactorLevel, SandboxRun } from '../ports/reactor-runner.ts'
import { AS_ROOT_ADVICE, describeGuestUser } from './guest-user.ts'

/** The settings of the runner, and its dependencies. */
export interface RunnerSettings {
  readonly level: ReactorLevel
  /** Packages the code may require besides the bundled ones. */
  readonly packages: readonly string[]
  /** Whether the output of reactors goes to the log. */
  readonly logs: boolean
  readonly egress: Egress
  readonly log: Log
  /** Certificates of authorities, as PEM, trusted in addition to the public ones. */
  readonly authorities: readonly string[]
  /** Opens a connection to the service itself, for a tenant's code; null before it serves. */
  readonly connect: (inProcessCaller: InProcessCaller) => Duplex | null
  /** File beside which packages are looked for, if not beside the service. */
  readonly anchor?: string
  /** Maximum duration of the sandbox self-test, in milliseconds; `WALLS_TEST_MS_MAX` unless given. */
  readonly wallsTestMsMax?: number
}

/** Opens the jail. If the sandbox does not hold, logs why there is none. */
export async function openRunner(settings: RunnerSettings): Promise<JailRunner> {
  const { level, packages, logs, egress, log, authorities, connect } = settings
  const { wallsTestMsMax = WALLS_TEST_MS_MAX, anchor } = settings
  const runner = await JailRunner.open({
    level,
    packages,
    authorities,
    wallsTestMsMax,
    ...(anchor !== undefined && { anchor }),
    output: logs ? (run, text) => logOutput(log, run, text) : null,
    waysOut: {
      toHost: ({ tenantId, destinations }, host, port, signal) =>
        egress.tunnel(tenantId, host, port, destinations, signal),
      toService: async ({ tenantId, destinations }) => {
        const connection = connect({ tenantId, destinations })
        if (connection === null) throw new Error('The service does not serve yet')
        return connection
      },
    },
  })
  if (runner.flaw !== null) log.warn('no_reactors', { reason: runner.flaw })
  else if (level === 'portable') log.warn('reactors_without_walls', { reason: NO_WALLS })
  if (runner.guestUser === 'root' && level !== 'portable') {
    log.warn('reactors_as_root', { reason: describeGuestUser('root'), hint: AS_ROOT_ADVICE })
  }
  if (runner.missing.length > 0) {
    log.warn('packages_missing', { packages: runner.missing, hint: BESIDE })
  }
  if (runner.notInstalled.length > 0) {
    log.info('reactor_modules_missing', { packages: runner.notInstalled, hint: MODULES })
  }
  return runner
}

const NO_WALLS =
  'the level portable has no sandbox of the kernel, and malicious code can escape it: run only code that you trust'
const MODULES = `reactors cannot require them: to let them, install ${MODULES_PACKAGE} beside the service`
const BESIDE = 'install them beside the service: reactors that require them fail'

/** Logs each line separately, quoted, whatever it contains. */
function logOutput(log: Log, { tenantId, reactorId }: SandboxRun, text: string): void {
  for (const line of text.replace(/\n$/, '').split('\n')) {
    for (let at = 0; at === 0 || at < line.length; at += REACTOR_LOG_LINE_CHARS_MAX) {
      const said = line.slice(at, at + REACTOR_LOG_LINE_CHARS_MAX)
      log.info('reactor_output', { tenant: tenantId, reactor: reactorId, said })
    }
  }
}

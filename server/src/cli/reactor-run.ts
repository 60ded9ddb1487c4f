import { readFileSync } from 'node:fs'
import { UndiciEgress } from '../adapters/egress/undici-egress.ts'
import { JailRunner, type Took } from '../adapters/jail/jail-runner.ts'
import { isLongerThan } from '../base/characters.ts'
import { isJsonObject, type Json } from '../base/json.ts'
import { MiB, REACTOR_CODE_CHARS_MAX, REACTOR_TIMEOUT_MS } from '../base/limits.ts'
import { containsPlaceholder, secretIn } from '../base/secret-value.ts'
import { Sensitive } from '../base/sensitive.ts'
import { parseStrictJson } from '../base/strict-json.ts'
import { ConfigError, readConfig, SETTINGS } from '../config.ts'
import {
  describePosition,
  type ReactorOutcome,
  type SandboxRun,
  type ThrownError,
} from '../ports/reactor-runner.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { followFiles } from './follow-files.ts'
import { describeGuestUser } from './guest-user.ts'
import { readAuthorities } from './read-authorities.ts'

/**
 * `symbolon reactor run FILE`: runs code as a vault would, but without one: in the same sandbox, with the same egress gateway
 * and without `bt`. Its result goes to standard output, everything else to standard error.
 *
 * Exits with 0 if the code returns, otherwise with 1.
 */
export const reactorRun: RunCommand = async ({ flags, words, out, err }) => {
  const { level, ...given } = flags
  if (level !== undefined && SETTINGS.reactorLevel.parse(level) === undefined) {
    throw new ConfigError(`--level is '${level}', but must be ${SETTINGS.reactorLevel.accepts}.`)
  }
  const config = readConfig(level === undefined ? given : { ...given, 'reactor-level': level })
  const [code, more] = words
  if (code === undefined || more !== undefined) {
    throw new ConfigError('It takes the name of one file with the code of a reactor.')
  }
  const files: ReactorFiles = { code, args: flags['args'], configuration: flags['configuration'] }
  const read = (): SandboxRun => readRun(files)
  // Unreadable files are reported before anything starts.
  const first = read()

  const authorities = readAuthorities(config.extraCaFile)
  const egress = new UndiciEgress({ allow: config.egressAllow, extraAuthorities: authorities })
  let took: Took = { ms: 0, privateBytes: 0 }
  const runner = await JailRunner.open({
    level: config.reactorLevel,
    packages: config.reactorPackages,
    authorities,
    output: (_, text) => err(text.replace(/\n$/, '')),
    // All input comes from files of the user who reads the output.
    redacts: false,
    measured: (_, it) => (took = it),
    waysOut: {
      toHost: (whose, host, port, signal) =>
        egress.tunnel(whose.tenantId, host, port, null, signal),
      toService: () => Promise.reject(new Error('There is no vault here')),
    },
  })
  try {
    if (runner.flaw !== null) throw new Error(`No reactors can be run here: ${runner.flaw}`)
    const run = async (input: SandboxRun): Promise<number> => {
      const outcome = await runner.run(input)
      const end = printOutcome(outcome, { out, err })
      const { ms, privateBytes } = took
      const user = runner.guestUser === null ? '' : `; ${describeGuestUser(runner.guestUser)}`
      err(`${end} after ${ms.toFixed(1)} ms, with ${(privateBytes / MiB).toFixed(1)} MiB${user}`)
      return outcome.kind === 'returned' ? 0 : 1
    }
    const status = await run(first)
    if (flags['watch'] === undefined) return status
    const named = Object.values(files).filter((it) => it !== undefined)
    await followFiles(named, async () => {
      try {
        await run(read())
      } catch (error) {
        err((error as Error).message)
      }
    })
    return 0
  } finally {
    await runner.close()
    await egress.close()
  }
}

interface ReactorFiles {
  readonly code: string
  readonly args: string | undefined
  readonly configuration: string | undefined
}

/** A new version for each run, so that a process with the previous code is not reused. */
let versions = 0

/** Throws ConfigError for a file that cannot be read, or is not JSON where it should be. */
function readRun({ code, args, configuration }: ReactorFiles): SandboxRun {
  const text = readText(code)
  if (isLongerThan(text, REACTOR_CODE_CHARS_MAX)) {
    throw new ConfigError(`${code} has more than ${REACTOR_CODE_CHARS_MAX} characters.`)
  }
  return {
    tenantId: 'local',
    reactorId: 'local',
    version: String(++versions),
    code: text,
    args: readJson(args),
    configuration: readConfiguration(configuration),
    apiKey: null,
    destinations: null,
    timeoutMs: REACTOR_TIMEOUT_MS,
  }
}

function readJson(file: string | undefined): Sensitive<string> {
  if (file === undefined) return new Sensitive('{}')
  const text = readText(file)
  try {
    JSON.parse(text)
  } catch (error) {
    throw new ConfigError(`${file} is no JSON: ${(error as Error).message}.`)
  }
  return new Sensitive(text)
}

/** Returns the configuration as code receives it: each secret as a string. */
function readConfiguration(file: string | undefined): Sensitive<string> {
  const configuration = JSON.parse(readJson(file).reveal()) as Json
  if (!isJsonObject(configuration)) return new Sensitive(JSON.stringify(configuration))
  if (containsPlaceholder(configuration)) {
    throw new ConfigError(`${file} holds the placeholder of a secret: put the secret in its place.`)
  }
  const entries = Object.entries(configuration).map(([name, it]) => [name, secretIn(it) ?? it])
  return new Sensitive(JSON.stringify(Object.fromEntries(entries)))
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/** Prints the outcome and returns a short description of it. */
function printOutcome(
  outcome: ReactorOutcome,
  { out, err }: Pick<CommandInput, 'out' | 'err'>,
): string {
  if (outcome.kind === 'returned') {
    out(JSON.stringify(parseStrictJson(outcome.result.reveal()), null, 2))
    return 'It returned'
  }
  if (outcome.kind === 'threw') err(thrownLines(outcome.error).join('\n'))
  if (outcome.kind === 'no-function') err(outcome.message)
  if ('position' in outcome && outcome.position !== null) {
    err(`  at ${describePosition(outcome.position)}`)
  }
  return ENDS[outcome.kind]
}

const ENDS = {
  threw: 'It threw',
  'no-function': 'There was nothing to run: it ended',
  'timed-out': 'It took too long: it was ended',
  'out-of-memory': 'It took too much memory: it was ended',
  died: 'Its process died',
  unsendable: 'It returned a value that JSON cannot carry exactly',
}

/** Renders the name and the message, then the remaining members. */
function thrownLines({ name, message, ...rest }: ThrownError): string[] {
  const more = Object.entries(rest).filter(([, it]) => it !== null)
  return [
    `${textOf(name ?? 'Error')}: ${textOf(message)}`,
    ...more.map(([member, it]) => `  ${member}: ${JSON.stringify(it)}`),
  ]
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

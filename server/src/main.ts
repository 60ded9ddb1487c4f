/**
 * The `symbolon` program: finds the command and runs it.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { Command, CommandInput } from './cli/command.ts'
import { COMMANDS } from './cli/commands.ts'
import { keepMemoryOutOfCoreDumps } from './cli/core-dumps.ts'
import { helpOf, helpOfCommand } from './cli/help.ts'
import { version } from './cli/version.ts'
import { nearestOf } from './base/edit-distance.ts'
import { ConfigError, flagOf, SettingError, SETTINGS, type Flags } from './config.ts'

keepMemoryOutOfCoreDumps()
// Exits even if a client still holds a connection: `stop` promises that the process ends.
process.exit(await main(process.argv.slice(2)))

async function main(words: string[]): Promise<number> {
  const [name, args] = nameAndRest(words)
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  const err = (line: string): void => void process.stderr.write(`${line}\n`)
  const unheard = onceUnheard(err)
  if (name === undefined || name === 'help' || isHelp(name)) {
    const command = COMMANDS.find((it) => it.name === args.join(' '))
    for (const line of command === undefined ? helpOf(COMMANDS) : helpOfCommand(command)) out(line)
    return name === undefined ? 2 : 0
  }
  if (name === 'version' || name === '--version') {
    out(version())
    return 0
  }
  const command = COMMANDS.find((it) => it.name === name)
  if (command === undefined) {
    const longer = COMMANDS.filter((it) => it.name.startsWith(`${name} `))
    const meant = longer.map((it) => `'${it.name}'`).join(', ')
    err(`There is no command '${name}'${meant && `, but ${meant}`}. Try: symbolon help`)
    return 2
  }
  if (args.some(isHelp)) {
    for (const line of helpOfCommand(command)) out(line)
    return 0
  }
  let flags: Flags = {}
  try {
    const given = parseWords(command, args)
    flags = given.flags
    const run = await command.load()
    const status = await run({ ...given, out, err })
    return unheard() ? 1 : status
  } catch (error) {
    err(`symbolon ${name}: ${messageOf(error, flags)}`)
    return 1
  }
}

/**
 * Returns a function that says whether output was lost: on a full disk, or in a pipe whose reader is gone. The loss is reported
 * as soon as it is noticed, and does not stop a server.
 */
function onceUnheard(err: (line: string) => void): () => boolean {
  let unheard = false
  // The reader of standard error is gone as well.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (!unheard) err(`symbolon: Cannot write to the standard output (${code})`)
    unheard = true
  })
  return () => unheard
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h'
}

/** Some commands have a name of two words. */
function nameAndRest([first, second, ...rest]: string[]): [string | undefined, string[]] {
  const both = `${first} ${second}`
  if (COMMANDS.some((it) => it.name === both)) return [both, rest]
  return [first, second === undefined ? [] : [second, ...rest]]
}

function parseWords(command: Command, args: string[]): Pick<CommandInput, 'flags' | 'words'> {
  const settings = Object.values(SETTINGS).map((it) => [flagOf(it.variable), 'string'] as const)
  const options = Object.fromEntries(
    [...settings, ...Object.entries(command.flags)].map(([flag, type]) => [flag, { type }]),
  )
  const { values, positionals } = parse(args, options, command.takesWords === true)
  const flags = Object.fromEntries(
    Object.entries(values).map(([flag, value]) => [flag, value === true ? '' : String(value)]),
  )
  return { flags, words: positionals }
}

function parse(
  args: string[],
  options: NonNullable<ParseArgsConfig['options']>,
  allowPositionals: boolean,
) {
  try {
    const whole = withNumbers(withBareFlags(args), options)
    return parseArgs({ args: whole, options, strict: true, allowPositionals })
  } catch (error) {
    throw better(error, Object.keys(options))
  }
}

/** Gives a flag that may stand alone the value `on`, unless a value follows. */
function withBareFlags(args: string[]): string[] {
  const bare = Object.values(SETTINGS).filter((it) => it.bare === true)
  const flags = bare.map((it) => `--${flagOf(it.variable)}`)
  return args.map((it, at) => {
    const alone = flags.includes(it) && !['on', 'off'].includes(args[at + 1] ?? '')
    return alone ? `${it}=on` : it
  })
}

/** Joins a negative number to its flag, since parseArgs() would take it for a flag: the setting's own check refuses it. */
function withNumbers(args: string[], options: NonNullable<ParseArgsConfig['options']>): string[] {
  const joined: string[] = []
  for (const it of args) {
    const flag = joined.at(-1)
    const takesIt = flag?.startsWith('--') === true && options[flag.slice(2)]?.type === 'string'
    if (takesIt && /^-\d/.test(it)) joined[joined.length - 1] = `${flag}=${it}`
    else joined.push(it)
  }
  return joined
}

/** Returns a clearer error for unreadable arguments; for an unknown flag, with a suggestion. */
function better(error: unknown, flags: readonly string[]): unknown {
  const message = error instanceof Error ? error.message : ''
  const ambiguous = /^Option '(--[^' ]+)' argument is ambiguous/.exec(message)
  if (ambiguous !== null) {
    const [, flag] = ambiguous
    return new ConfigError(
      `${flag} takes a value, and one that begins with a dash is written ${flag}=-value.`,
    )
  }
  const unknown = /^Unknown option '(-+([^']+))'/.exec(message)
  if (unknown === null) return error
  const begun = flags.find((it) => it.startsWith(unknown[2]!))
  const meant = begun === undefined ? nearestOf(unknown[2]!, flags) : [begun]
  const hint =
    meant.length === 0 ? '' : ` Did you mean ${meant.map((it) => `--${it}`).join(' or ')}?`
  return new ConfigError(`There is no setting '${unknown[1]}'.${hint} Try: symbolon help`)
}

/** Returns the message without a stack: operators need the cause, not the place in our code. */
function messageOf(error: unknown, flags: Flags): string {
  if (error instanceof SettingError) return error.for(flags)
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}

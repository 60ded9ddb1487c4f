/** Runs the words of a command line: finds the command, and parses its flags. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { nearestOf } from '../base/edit-distance.ts'
import { ConfigError, flagOf, SettingError, SETTINGS, type Flags } from '../config.ts'
import type { Command, CommandInput } from './command.ts'
import { COMMANDS } from './commands.ts'
import { helpOf, helpOfCommand } from './help.ts'
import { isStoreOutage } from '../ports/store-outage.ts'
import { version } from './version.ts'

/** Receives lines of output. */
export type Output = Pick<CommandInput, 'out' | 'err'>

/** Returns the exit status of the program, as far as the command decides it; `isUnheard` says whether output was lost. */
export async function runWords(
  words: readonly string[],
  { out, err }: Output,
  isUnheard: () => boolean = () => false,
): Promise<number> {
  const [name, args] = nameAndRest(words)
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
    return isUnheard() ? 1 : status
  } catch (error) {
    err(`symbolon ${name}: ${operatorMessageOf(error, flags)}`)
    return 1
  }
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h'
}

/** Some commands have a name of two words. */
function nameAndRest([first, second, ...rest]: readonly string[]): [string | undefined, string[]] {
  const both = `${first} ${second}`
  if (COMMANDS.some((it) => it.name === both)) return [both, rest]
  return [first, second === undefined ? [] : [second, ...rest]]
}

function parseWords(command: Command, args: string[]): Pick<CommandInput, 'flags' | 'words'> {
  const settings = Object.values(SETTINGS).map((it) => [flagOf(it.variable), 'string'] as const)
  const options = Object.fromEntries(
    [...settings, ...Object.entries(command.flags)].map(([flag, type]) => [
      flag,
      type === 'list' ? { type: 'string' as const, multiple: true } : { type },
    ]),
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
export function operatorMessageOf(error: unknown, flags: Flags): string {
  if (error instanceof SettingError) return error.for(flags)
  if (!(error instanceof Error)) return String(error)
  const message = isStoreOutage(error) ? OUTAGE : error.message
  return error.cause instanceof Error ? `${message} (${error.cause.message})` : message
}

/** The detail of the refusal is for clients, which repeat a request. */
const OUTAGE =
  'The database stopped answering. The last change may or may not have been made; all others are as they were reported. ' +
  'Once the database answers again, run the command again.'

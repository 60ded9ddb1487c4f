/**
 * The `symbolon` program: finds the command and runs it.
 */
import { parseArgs } from 'node:util'
import { auditVerify } from './cli/audit-verify.ts'
import { backupCommand, backupKey } from './cli/backup.ts'
import { callbacksList, callbacksReplay } from './cli/callbacks.ts'
import type { Command, CommandInput } from './cli/command.ts'
import { init } from './cli/init.ts'
import { keysRotate } from './cli/keys-rotate.ts'
import { migrateCommand } from './cli/migrate.ts'
import { reactorRun } from './cli/reactor-run.ts'
import { restore } from './cli/restore.ts'
import { serve } from './cli/serve.ts'
import { version } from './cli/version.ts'
import { flagOf, SETTINGS } from './config.ts'

const COMMANDS: readonly Command[] = [
  serve,
  init,
  backupCommand,
  backupKey,
  restore,
  migrateCommand,
  keysRotate,
  auditVerify,
  callbacksList,
  callbacksReplay,
  reactorRun,
]

// Also when a client still holds a connection: whoever stops us was promised that we end.
process.exit(await main(process.argv.slice(2)))

async function main(words: string[]): Promise<number> {
  const [name, args] = nameAndRest(words)
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  const err = (line: string): void => void process.stderr.write(`${line}\n`)
  if (name === undefined || name === 'help' || name === '--help') {
    for (const line of help()) out(line)
    return name === undefined ? 2 : 0
  }
  if (name === 'version' || name === '--version') {
    out(version())
    return 0
  }
  const command = COMMANDS.find((it) => it.name === name)
  if (command === undefined) {
    err(`There is no command '${name}'. Try: symbolon help`)
    return 2
  }
  try {
    return await command.run({ ...parseWords(command, args), out, err })
  } catch (error) {
    err(`symbolon ${name}: ${messageOf(error)}`)
    return 1
  }
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
  const allowPositionals = command.takesWords === true
  const { values, positionals } = parseArgs({ args, options, strict: true, allowPositionals })
  const flags = Object.fromEntries(
    Object.entries(values).map(([flag, value]) => [flag, value === true ? '' : String(value)]),
  )
  return { flags, words: positionals }
}

/** An operator is told what is wrong, not where in our code it was noticed. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}

function help(): string[] {
  return [
    'Usage: symbolon <command> [--setting value ...]',
    '',
    ...COMMANDS.map((it) => `  ${it.name.padEnd(18)}${it.about}`),
    `  ${'version'.padEnd(18)}Print the version`,
    '',
    'Every setting is a variable and a flag (SYMBOLON_PORT, --port):',
    '',
    ...Object.values(SETTINGS).map(
      (it) => `  --${flagOf(it.variable).padEnd(24)}${it.default === '' ? 'unset' : it.default}`,
    ),
  ]
}

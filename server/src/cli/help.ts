import { flagOf, SETTINGS } from '../config.ts'
import type { Command } from './command.ts'

/** Returns the output of `symbolon help`: the commands and the settings. */
export function helpOf(commands: readonly Command[]): string[] {
  return [
    'Usage: symbolon <command> [--setting value ...]',
    '',
    ...table([...commands.map((it) => [it.name, it.about]), ['version', 'Print the version']]),
    '',
    ...settings(),
    '',
    'More of a command: symbolon <command> --help',
  ]
}

/** Returns the output of `symbolon serve --help`, or that of any other command. */
export function helpOfCommand({ name, about, flags, takesWords }: Command): string[] {
  const own = Object.entries(flags).map(([flag, type]) =>
    type === 'boolean' ? flag : `${flag} ...`,
  )
  return [
    `Usage: symbolon ${name}${takesWords === true ? ' FILE' : ''}${own.map((it) => ` [--${it}]`).join('')} [--setting value ...]`,
    '',
    `  ${about}`,
    '',
    ...settings(),
  ]
}

/** Returns the first sentence of each; docs/operate/configuration.md has the rest. */
function settings(): string[] {
  return [
    'Every setting is a variable and a flag (SYMBOLON_PORT, --port):',
    '',
    ...table(
      Object.values(SETTINGS).map(({ variable, about, default: written }) => {
        const sentence = /^.*?[.](?= |$)/.exec(about)![0].replaceAll('`', '')
        return [`--${flagOf(variable)}`, `${sentence} [${written === '' ? 'unset' : written}]`]
      }),
    ),
  ]
}

/** Returns a line per row, whose texts begin in the same column. */
function table(rows: readonly string[][]): string[] {
  const width = Math.max(...rows.map(([name]) => name!.length))
  return rows.map(([name, text]) => `  ${name!.padEnd(width)}  ${text}`)
}

import { flagOf, SETTINGS } from '../config.ts'
import type { Command } from './command.ts'

/** Returns the output of `symbolon help`: the commands and the settings. */
export function helpOf(commands: readonly Command[]): string[] {
  return [
    'Usage: symbolon <command> [--setting value ...]',
    '',
    ...commands.map((it) => `  ${it.name.padEnd(18)}${it.about}`),
    `  ${'version'.padEnd(18)}Print the version`,
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
    ...Object.values(SETTINGS).map(({ variable, about, default: written }) => {
      const sentence = /^.*?[.](?= |$)/.exec(about)![0].replaceAll('`', '')
      return `  --${flagOf(variable).padEnd(24)}${sentence} [${written === '' ? 'unset' : written}]`
    }),
  ]
}

import { flagOf, SETTINGS } from '../config.ts'
import type { Command } from './command.ts'

/** What `symbolon help` says: what there is to do, and what can be set. */
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

/** What `symbolon serve --help` says, and that of any other command. */
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

/** The first sentence of each; docs/operate/configuration.md has the others. */
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

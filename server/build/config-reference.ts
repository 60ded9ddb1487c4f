import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { flagOf, SETTINGS, type Config } from '../src/config.ts'

/** Where the page lies, from the project's folder. */
export const CONFIG_REFERENCE = 'docs/operate/configuration.md'

/** Returns the operator's page of every setting, as Markdown. */
export function configReference(): string {
  const names = Object.keys(SETTINGS) as (keyof Config)[]
  return `# Configuration

<!-- Made by npm run docs from server/src/config.ts: change it there. -->

Every setting is an environment variable and a flag: \`SYMBOLON_DATA_DIR=/srv/vault\` means the same as
\`--data-dir /srv/vault\`, and a flag overrides a variable. An invalid value stops the start with one sentence
that names the setting, the value and what is accepted. So does a variable that begins with \`SYMBOLON_\` and is at
most two edits away from one in this table: it is most likely misspelled. Any other unknown variable with this prefix
is reported in the log (\`unknown_variables\`), and the start continues.

For a Service named \`symbolon\` or \`symbolon-metrics\`, Kubernetes sets variables in every pod of its namespace, such as
\`SYMBOLON_SERVICE_HOST\` and \`SYMBOLON_PORT=tcp://10.0.0.1:4400\`. They are ignored: the default or the flag applies.
The log names those that have the name of a setting (\`ignored_variables\`).

## Settings

${HEAD}
${names.map(rowOf).join('\n')}
`
}

const HEAD = `| Variable | Flag | Default | Must be | What it is for |
|---|---|---|---|---|`

function rowOf(name: keyof Config): string {
  const { variable, default: written, accepts, about } = SETTINGS[name]
  const shown = written === '' ? 'unset' : `\`${written}\``
  const cells = [`\`${variable}\``, `\`--${flagOf(variable)}\``, shown, accepts, about]
  return `| ${cells.map((it) => it.replaceAll('|', '\\|')).join(' | ')} |`
}

if (import.meta.main) {
  const project = path.join(import.meta.dirname, '../..')
  writeFileSync(path.join(project, CONFIG_REFERENCE), configReference())
}

/**
 * Runs one piece of code in a jail and prints the outcome. A program of its own, so that it can run as another user and in
 * its own namespaces.
 *
 * The variable LEVEL selects the sandbox level. Arguments: the code, its args as JSON, and `linger` to stay until killed.
 * With `bare` in place of `linger`, the code runs in this process without any sandbox: an attack must succeed there to count
 * as one.
 */
import { createRequire } from 'node:module'
import { Sensitive } from '../../src/base/sensitive.ts'
import { REACTOR_LEVELS, type SandboxRun } from '../../src/ports/reactor-runner.ts'
import { JailRunner } from '../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../src/adapters/jail/no-way.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

const [code = '', args = '{}', mode = ''] = process.argv.slice(2)

if (mode === 'bare') {
  const module = { exports: {} as (req: object) => unknown }
  const compile = createRequire(import.meta.url)('node:vm').compileFunction
  compile(code, ['module', 'require'])(module, createRequire(import.meta.url))
  const result = await module.exports({ args: JSON.parse(args), configuration: {}, bt: null })
  process.stdout.write(`${JSON.stringify({ kind: 'returned', result })}\n`)
  process.exit()
}

const runner = await JailRunner.open({
  level: REACTOR_LEVELS.find((it) => it === process.env['LEVEL']) ?? 'jail',
  packages: [],
  authorities: [],
  waysOut: NO_WAY,
  wallsTestMsMax: TIMEOUT_MS,
})
if (runner.flaw !== null) {
  process.stdout.write(`${JSON.stringify({ kind: 'flaw', flaw: runner.flaw })}\n`)
  process.exit()
}
const run: SandboxRun = {
  tenantId: 'tenant-a',
  reactorId: 'reactor-a',
  version: '1',
  code,
  args: new Sensitive(args),
  configuration: new Sensitive('{}'),
  apiKey: null,
  destinations: null,
  timeoutMs: TIMEOUT_MS,
}
const outcome = await runner.run(run)
process.stdout.write(
  `${JSON.stringify(
    outcome.kind === 'returned'
      ? { kind: 'returned', result: JSON.parse(String(outcome.result.reveal())) }
      : outcome,
  )}\n`,
)
if (mode === 'linger') await new Promise(() => setInterval(() => {}, 1_000))
await runner.close()
process.exit()

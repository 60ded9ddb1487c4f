import { LOCAL_MACHINE } from '../../adapters/system/machine.ts'
import { ConfigError, readConfig, type Config, type Environment } from '../../config.ts'
import type { CommandInput, RunCommand } from '../command.ts'
import { CHECKS } from './checks.ts'
import { failed } from './check.ts'
import { openContext, type ContextInput } from './context.ts'
import { renderJson, renderReport, statusOf } from './report.ts'
import { runChecks, type CheckResult } from './run-checks.ts'

/**
 * `symbolon doctor`: checks everything that the service depends on, and says how to fix what is wrong.
 *
 * Reads only, beside a running service or without one. Exits with 1 if a check failed, or with `--strict` if one warned.
 */
export const doctor: RunCommand = async ({ flags, out }) => {
  const results = await resultsOf(flags)
  if (flags['json'] === undefined) for (const line of renderReport(results)) out(line)
  else out(renderJson(results))
  const status = statusOf(results)
  return status === 'failed' || (status === 'warning' && flags['strict'] !== undefined) ? 1 : 0
}

/** Runs every check that applies. */
export async function diagnose(input: ContextInput): Promise<CheckResult[]> {
  const { context, close } = await openContext(input)
  try {
    return await runChecks(CHECKS, input.config, context)
  } finally {
    await close()
  }
}

/** With unusable settings there is nothing to check against. */
async function resultsOf(flags: CommandInput['flags']): Promise<CheckResult[]> {
  let config: Config
  try {
    config = readConfig(flags)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const finding = failed(error.message, 'Correct this setting, then run symbolon doctor again.')
    return [{ name: 'settings', group: 'settings', ...finding }]
  }
  const environment: Environment = givenVariables()
  return await diagnose({ config, environment, machine: LOCAL_MACHINE })
}

import { LOCAL_MACHINE } from '../../adapters/system/host-machine.ts'
import {
  ConfigError,
  ignoredVariables,
  readConfig,
  unknownVariables,
  type Config,
} from '../../config.ts'
import type { CommandInput, RunCommand } from '../command.ts'
import { CHECKS } from './checks.ts'
import { failed, type Check } from './check.ts'
import { openContext, type ContextInput } from './context.ts'
import { renderJson, renderReport, statusOf } from './report.ts'
import { runChecks, type CheckResult } from './run-checks.ts'

/**
 * `symbolon doctor`: checks everything that the service depends on, and says how to fix each problem.
 *
 * Read-only; may run beside the service. Exits with 1 if a check failed, or with `--strict` if one warned.
 */
export const doctor: RunCommand = async ({ flags, out }) => {
  const results = await resultsOf(flags)
  if (flags['json'] === undefined) for (const line of renderReport(results)) out(line)
  else out(renderJson(results))
  const status = statusOf(results)
  return status === 'failed' || (status === 'warning' && flags['strict'] !== undefined) ? 1 : 0
}

/** Runs the checks that apply. */
export async function diagnose(
  input: ContextInput,
  checks: readonly Check[] = CHECKS,
): Promise<CheckResult[]> {
  const { context, close } = await openContext(input)
  try {
    return await runChecks(checks, input.config, context)
  } finally {
    await close()
  }
}

/** With unusable settings, reports only those. */
async function resultsOf(flags: CommandInput['flags']): Promise<CheckResult[]> {
  let config: Config
  try {
    config = readConfig(flags)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const finding = failed(error.message, 'Correct this setting, then run symbolon doctor again.')
    return [{ name: 'settings', group: 'settings', ...finding }]
  }
  return await diagnose({
    config,
    unknownVariables: unknownVariables(),
    ignoredVariables: ignoredVariables(flags),
    machine: LOCAL_MACHINE,
  })
}

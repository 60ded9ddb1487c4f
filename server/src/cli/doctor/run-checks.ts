import { isDamage } from '../../adapters/storage/sqlite/unusable-database.ts'
import type { Config } from '../../config.ts'
import { CheckSkipped, failed, type Check, type CheckGroup, type Finding } from './check.ts'
import type { DoctorContext } from './context.ts'

export interface CheckResult extends Finding {
  readonly name: string
  readonly group: CheckGroup
}

/** Time limit of a check, in milliseconds. Ours. */
const CHECK_MS_MAX = 15_000

/** Runs the checks that apply, one by one, so that none slows down another. */
export async function runChecks(
  checks: readonly Check[],
  config: Config,
  context: DoctorContext,
): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  for (const it of checks) {
    if (it.applies?.(config) === false) continue
    results.push({ name: it.name, group: it.group, ...(await findingOf(it, context)) })
  }
  return results
}

async function findingOf(check: Check, context: DoctorContext): Promise<Finding> {
  const { timeoutMs = CHECK_MS_MAX } = check
  const { promise: late, resolve } = Promise.withResolvers<Finding>()
  const timer = setTimeout(() => resolve(tooLate(timeoutMs)), timeoutMs)
  try {
    return await Promise.race([check.run(context), late])
  } catch (error) {
    if (error instanceof CheckSkipped) {
      return { status: 'skipped', message: `Not checked: ${error.message}.`, remedy: null }
    }
    const reason = error instanceof Error ? reasonOf(error) : String(error)
    if (isDamage(error)) return failed(`The database is damaged: ${reason}.`, RESTORE_DAMAGED)
    return failed(`The check itself failed: ${reason}.`, CRASHED)
  } finally {
    clearTimeout(timer)
  }
}

function tooLate(timeoutMs: number): Finding {
  return failed(
    `The check did not finish within ${timeoutMs / 1000} s.`,
    'Find out why the machine, the disk or the database does not answer, then run symbolon doctor again.',
  )
}

/** Returns the messages of an error and its causes, on one line. */
export function reasonOf(error: Error): string {
  const messages: string[] = []
  for (let it: unknown = error; it instanceof Error; it = it.cause) {
    const { code } = it as NodeJS.ErrnoException
    // A connection to a name with several addresses fails with several errors and no message.
    const text = it.message || (code ?? '')
    if (text !== '') messages.push(text.trim().replaceAll(/\s+/g, ' '))
  }
  return messages.join(': ').replace(/\.$/, '')
}

/** The remedy for a damaged database. */
export const RESTORE_DAMAGED =
  'Stop the service and copy the data folder to another disk as it is. Restore the newest good backup to a new folder ' +
  '(symbolon restore) and set SYMBOLON_DATA_DIR to that; symbolon verify finds the values in it that do not decrypt.'

const CRASHED =
  "Run symbolon doctor as the service's user, with its settings; if that changes nothing, report the message."

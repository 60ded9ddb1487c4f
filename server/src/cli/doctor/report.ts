import { CHECK_GROUPS, type CheckStatus } from './check.ts'
import type { CheckResult } from './run-checks.ts'

/** Worst first. */
const ORDER: readonly CheckStatus[] = ['failed', 'warning', 'skipped', 'ok']

/** Returns the worst status. Skipped checks do not count: the cause is the status of another check. */
export function statusOf(results: readonly CheckResult[]): Exclude<CheckStatus, 'skipped'> {
  if (results.some((it) => it.status === 'failed')) return 'failed'
  return results.some((it) => it.status === 'warning') ? 'warning' : 'ok'
}

/** Returns the report as lines of text: problems first, the summary last. */
export function renderReport(results: readonly CheckResult[]): string[] {
  const width = Math.max(0, ...results.map((it) => it.name.length)) + 2
  const lines = sorted(results).flatMap(({ status, name, message, remedy }) => {
    const line = `${status.padEnd(9)}${name.padEnd(width)}${message}`
    return remedy === null ? [line] : [line, `${' '.repeat(9 + width)}To fix: ${remedy}`]
  })
  return [...lines.map(printable), '', summaryOf(results)]
}

/** Returns the report as one line of JSON. */
export function renderJson(results: readonly CheckResult[]): string {
  const checks = sorted(results).map(({ name, group, status, message, remedy }) => {
    return { name, group, status, message, remedy }
  })
  return JSON.stringify({ status: statusOf(results), checks })
}

/** Replaces control characters, which a terminal would obey: error messages and file names are not ours. */
function printable(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, '\ufffd')
}

function sorted(results: readonly CheckResult[]): CheckResult[] {
  return results.toSorted(
    (a, b) =>
      ORDER.indexOf(a.status) - ORDER.indexOf(b.status) ||
      CHECK_GROUPS.indexOf(a.group) - CHECK_GROUPS.indexOf(b.group),
  )
}

function summaryOf(results: readonly CheckResult[]): string {
  const count = (status: CheckStatus): number => results.filter((it) => it.status === status).length
  const warnings = count('warning')
  const parts = [
    `${count('failed')} failed`,
    `${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`,
    ...(count('skipped') === 0 ? [] : [`${count('skipped')} skipped`]),
    `${count('ok')} ok`,
  ]
  return parts.join(', ')
}

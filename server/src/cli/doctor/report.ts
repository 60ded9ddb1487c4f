import { printable } from '../printable.ts'
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
    return remedy === null ? [line] : [line, ...wrapped(`To fix: ${printable(remedy)}`, 9 + width)]
  })
  return [...lines.map(printable), '', summaryOf(results)]
}

/** Columns of a line, except for a command that takes more. Ours. */
const COLUMNS_MAX = 100

/** Breaks a remedy into indented lines; a command stays whole, so that it can be copied and no part of it runs alone. */
function wrapped(text: string, indent: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const it of text.match(UNBREAKABLE) ?? []) {
    const longer = line === '' ? it : `${line} ${it}`
    const fits = line === '' || indent + longer.length <= COLUMNS_MAX
    if (!fits) lines.push(line)
    line = fits ? longer : it
  }
  return [...lines, line].map((it) => ' '.repeat(indent) + it)
}

/** "run" and a command up to the next punctuation outside of quotes, or a word. */
const UNBREAKABLE = /[Rr]un (?:\\'|'[^']*'|[^'])+?[.,:;)](?= |$)|\S+/g

/** Returns the report as one line of JSON. */
export function renderJson(results: readonly CheckResult[]): string {
  const checks = sorted(results).map(({ name, group, status, message, remedy }) => {
    return { name, group, status, message, remedy }
  })
  return JSON.stringify({ status: statusOf(results), checks })
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

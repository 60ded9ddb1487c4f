/** Formats benchmark output: aligned columns, ratios against their goals, and the machine it ran on. */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Renders rows under headings: the first column to the left, numbers to the right. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((it) => it[column]!.length)))
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!),
        )
        .join('  '),
    )
    .join('\n')
}

export interface Goal {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Whether more is better. */
  readonly atLeast: boolean
  readonly gate: number
  readonly aim: number | null
}

export function holds({ value, atLeast, gate }: Goal): boolean {
  return atLeast ? value >= gate : value <= gate
}

export function renderGoals(goals: readonly Goal[]): string {
  return renderTable(
    ['goal', 'measured', 'gate', 'aim', ''],
    goals.map((it) => {
      const sign = it.atLeast ? '>=' : '<='
      const number = (value: number): string => `${value.toFixed(2)}${it.unit}`
      return [
        it.name,
        number(it.value),
        `${sign} ${number(it.gate)}`,
        it.aim === null ? '' : `${sign} ${number(it.aim)}`,
        holds(it) ? 'holds' : 'MISSED',
      ]
    }),
  )
}

export function renderMachine(): string {
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')
  const gib = Math.round(totalmem() / 2 ** 30)
  return `${availableParallelism()} x ${cpus()[0]!.model.trim()}, ${gib} GiB, Node ${process.versions.node}, load ${load}`
}

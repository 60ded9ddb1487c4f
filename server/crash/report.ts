import type { CrashResult, KillTally } from './harness.ts'
import { FAULTS, type Fault } from './verify.ts'

export function renderProgress(kill: number, { startMs, missed }: KillTally): string {
  return `${kill} kills, ${missed} points missed, ready after ${Math.round(median(startMs))} ms`
}

/** A table for people, then one line of JSON for programs. */
export function renderResult(
  about: Readonly<Record<string, unknown>>,
  result: CrashResult,
): string[] {
  const { startMs, points, stories, faults, kills, ...counts } = result
  const figures = {
    ...about,
    kills: kills.named + kills.random + kills.starting,
    killedAt: { random: kills.random, starting: kills.starting, ...points },
    readyMs: { median: Math.round(median(startMs)), max: Math.round(Math.max(...startMs)) },
    ...counts,
    seconds: Math.round(result.seconds),
  }
  const rows = Object.entries(figures).flatMap(([name, it]) =>
    typeof it === 'object' && it !== null
      ? Object.entries(it).map(([part, value]) => [`${name} ${part}`, value] as const)
      : [[name, it] as const],
  )
  return [
    '',
    ...rows.map(([name, value]) => `  ${name.padEnd(24)}${String(value).padStart(10)}`),
    '',
    ...Object.entries(FAULTS).map(
      ([fault, meaning]) =>
        `  ${fault.padEnd(24)}${String(faults[fault as Fault]).padStart(10)}   ${meaning}`,
    ),
    '',
    ...stories,
    JSON.stringify({ ...figures, faults }),
  ]
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0
}

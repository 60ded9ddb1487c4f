/** The conditions that tests are repeated under: a seed, or a date. */
import { existsSync, globSync, rmSync } from 'node:fs'

export interface RepeatRun {
  /** As in "seed 7". */
  readonly name: string
  /** The variables that bring the condition about in a process that starts at `now`, in epoch milliseconds. */
  readonly environment: (now: number) => Record<string, string>
}

/** One run per seed, from `first` on. */
export function seedRuns(count: number, first: number): RepeatRun[] {
  return Array.from({ length: count }, (_, n) => {
    const seed = String(first + n)
    return { name: `seed ${seed}`, environment: () => ({ SYMBOLON_TEST_SEED: seed }) }
  })
}

/** One run for all of these seeds, in which each property is checked under every one. */
export function rangeRun(count: number, first: number): RepeatRun {
  const range = `${first}-${first + count - 1}`
  return { name: `seeds ${range}`, environment: () => ({ SYMBOLON_TEST_SEED: range }) }
}

/**
 * One run per day, from the day of `now` (epoch milliseconds) on, with a seed and a time zone of its own. Every other run
 * begins three seconds before midnight, UTC, and so passes into the next day, month or year; the others are spread over
 * the hours.
 *
 * `library` is that of `faketime`. It is given an offset and not a date, so that all processes agree on the time.
 */
export function dateRuns(count: number, now: number, library: string): RepeatRun[] {
  const today = now - (now % DAY_MS)
  return Array.from({ length: count }, (_, n) => {
    const timeOfDay = n % 2 === 0 ? DAY_MS - 3_000 : ((n * 7) % 24) * HOUR_MS
    const at = today + n * DAY_MS + timeOfDay
    const zone = TIME_ZONES[n % TIME_ZONES.length]!
    return {
      name: `${new Date(at).toISOString()}, ${zone}`,
      environment: (begun) => ({
        LD_PRELOAD: library,
        FAKETIME: `${at < begun ? '-' : '+'}${Math.round(Math.abs(at - begun) / 1_000)}`,
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        NO_FAKE_STAT: '1',
        SYMBOLON_TEST_SEED: String(n + 1),
        TZ: zone,
      }),
    }
  })
}

/** The library that `faketime` preloads, in the variant for threads. Throws when it is not installed. */
export function findFaketime(): string {
  const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
  if (library !== undefined) return library
  throw new Error('faketime is missing: apt-get install faketime')
}

/**
 * Removes what `faketime` left in shared memory of processes that were killed. A process of another user that gets such an id
 * would end at its start, since it may not open the files.
 */
export function removeFaketimeLeftovers(folder = '/dev/shm'): void {
  for (const path of globSync(`${folder}/*faketime_*`)) {
    const pid = /_(\d+)$/.exec(path)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(path, { force: true })
  }
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Both ends of the clock, one with daylight saving, one that is off by half an hour. */
const TIME_ZONES = [
  'UTC',
  'Pacific/Kiritimati',
  'America/New_York',
  'Asia/Kolkata',
  'Pacific/Pago_Pago',
]

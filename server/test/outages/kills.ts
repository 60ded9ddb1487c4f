/** How a PostgreSQL server is brought down, and its processes one by one. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dice } from '../../crash/dice.ts'
import type { PostgresDatabase } from '../../crash/postgres-database.ts'
import type { Cluster } from '../kit/postgres/cluster.ts'

export const DOWNFALLS = {
  killed: 'the postmaster and all its processes at once',
  orphaned: 'the postmaster alone: the others find out',
  immediate: 'told to stop at once',
} as const
export type Downfall = keyof typeof DOWNFALLS

/** Brings the server down; resolves when none of its processes is left. */
export async function bringDown({ pid }: Pick<Cluster, 'pid'>, how: Downfall): Promise<void> {
  const all = [pid, ...childrenOf(pid)]
  if (how === 'immediate') process.kill(pid, 'SIGQUIT')
  else for (const it of how === 'killed' ? all : [pid]) kill(it)
  while (all.some(isRunning)) await sleep(LOOK_MS)
}

const LOOK_MS = 10

/**
 * Ends one of the backends that serve the service, by its own means or by a signal; returns whether it was in the middle of
 * something, or null when there is none.
 */
export async function endBackend(database: PostgresDatabase, dice: Dice): Promise<boolean | null> {
  const backends = await database.ask<{ pid: number; busy: boolean }>(
    `SELECT pid, state <> 'idle' AS busy FROM pg_stat_activity WHERE application_name = 'symbolon'`,
  )
  const busy = backends.filter((it) => it.busy)
  const among = busy.length > 0 && dice() < BUSY_SHARE ? busy : backends
  const chosen = among[Math.floor(dice() * among.length)]
  if (chosen === undefined) return null
  if (dice() < 0.5) kill(chosen.pid, 'SIGTERM')
  else await database.ask('SELECT pg_terminate_backend($1)', [chosen.pid])
  return chosen.busy
}

/** Most of them are idle most of the time, and that is the dull case. */
const BUSY_SHARE = 0.8

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}

/** A process may end before it is killed. */
function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has.
  }
}

/** Returns whether the process runs; a zombie does not. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)![0] !== 'Z'
  } catch {
    return false
  }
}

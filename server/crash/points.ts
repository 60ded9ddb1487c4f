/**
 * Points where a server can be made to die: every named point of the write path.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import type { ProbePoint } from '../src/adapters/storage/sqlite/run-batch.ts'

/** The store's own points, in the order a batch passes them; a new one does not compile until it is here. */
const STORE_POINTS: Readonly<Record<ProbePoint, string>> = {
  begun: 'a transaction is open, nothing is in it',
  inserted: 'a commit of the batch is in it',
  again: 'the batch was rolled back, to be run commit by commit',
  committing: 'everything is in it, nothing is on disk',
  committed: 'it is on disk, nobody knows',
  staged: 'a chunk of a long list is on disk, unseen',
  replying: 'the writer is about to tell',
  replied: 'the writer has told, the callers wait',
}

/** Kill points around the store. */
const SERVICE_POINTS = {
  asked: 'the service is about to commit',
  told: 'the store has told the service, the service has told nobody',
} as const

export type ServicePoint = keyof typeof SERVICE_POINTS
export type Point = ProbePoint | ServicePoint

export const POINTS = Object.keys({ ...STORE_POINTS, ...SERVICE_POINTS }) as Point[]

/** Die when `point` is passed for the `nth` time, counted from 1. */
export interface KillAt {
  readonly point: Point
  readonly nth: number
}

/** How often at most a point is let pass: the rare ones are not waited for so long. */
export function passesMax(point: Point): number {
  if (point === 'again') return 2
  return point === 'staged' ? 6 : 40
}

/**
 * Passes count once the vault in `folder` is armed: reads are recorded too, so verifying the state
 * passes the same points, and must not kill the server.
 */
export function arm(folder: string, armed: boolean): void {
  if (armed) writeFileSync(`${folder}.armed`, '')
  else rmSync(`${folder}.armed`, { force: true })
}

export function isArmed(folder: string): boolean {
  return existsSync(`${folder}.armed`)
}

import type { Dice } from '../../crash/dice.ts'

/** A primary and its synchronous standby, which change roles: how depends on what manages them. */
export interface FailoverPair {
  /** Of the database, for each server of ours. */
  readonly addresses: readonly string[]
  /** Of whatever is the primary now, with nothing in between. */
  readonly primaryUrl: () => Promise<string>
  /** Lets the standby take over from a primary that works; resolves once the other one follows. */
  readonly switchOver: (dice: Dice, load: LoadDuringEvent) => Promise<void>
  /** Kills the primary, and lets the standby take over; resolves once there is a synchronous standby again. */
  readonly kill: (dice: Dice, load: LoadDuringEvent) => Promise<void>
  readonly stop: () => Promise<void>
}

/** What goes on meanwhile. */
export interface LoadDuringEvent {
  /** Resolves after so many more answers of any kind; at the latest after a moment, since all may wait. */
  readonly answers: (count: number) => Promise<void>
  /** To be called when the primary is gone, with how, and when the next one can be reached through all addresses. */
  readonly gone: (how: string) => void
  readonly reachable: () => void
  /** Asks both servers for what a standby would not know; resolves once each question has its answer. */
  readonly probe: () => Promise<void>
}

/** The end of an audit log, kept outside the database to tell later whether the database still has it. Decision 0104. */
import { CHAIN_START, type ChainPosition } from './audit-log.ts'

/** The log event of a tip that was lost. */
export const LOST_TIP_EVENT = 'audit_log_behind'

/** States that an audit log had an event with this number and hash. */
export interface RememberedTip {
  readonly number: number
  /** In hex. */
  readonly hash: string
}

/** A remembered tip that the database does not have any more. */
export interface LostTip {
  readonly tenantId: string
  readonly tip: RememberedTip
  /** Number of the last event that the database had instead. */
  readonly last: number
}

export function rememberedTip({ number, hash }: Omit<ChainPosition, 'listed'>): RememberedTip {
  return { number, hash: Buffer.from(hash).toString('hex') }
}

/** The tip of an audit log without events. */
export const EMPTY_TIP = rememberedTip(CHAIN_START)

export function isSameTip(a: RememberedTip, b: RememberedTip): boolean {
  return a.number === b.number && a.hash === b.hash
}

/** Returns the text for logs and commands, such as `1204:5f0c…`. */
export function tipText({ number, hash }: RememberedTip): string {
  return `${number}:${hash}`
}

/** Reverses tipText(); returns null for any other text. */
export function parseTip(text: string): RememberedTip | null {
  const found = /^([1-9]\d{0,15}):([0-9a-f]{64})$/i.exec(text)
  if (found === null) return null
  const number = Number(found[1])
  return Number.isSafeInteger(number) ? { number, hash: found[2]!.toLowerCase() } : null
}

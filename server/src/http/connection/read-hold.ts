import type { Socket } from 'node:net'
import { endHold, holdPaused } from '../../adapters/system/patches/socket-reading.ts'
import { connectionState, type HoldReason } from './connection-state.ts'

/** Stops reading `socket`, even when other code resumes it, until every reason is released. */
export function holdReading(socket: Socket, reason: HoldReason): void {
  const { holds } = connectionState(socket)
  const held = holds.throttle || holds.pipeline
  holds[reason] = true
  if (!held) holdPaused(socket)
}

export function releaseReading(socket: Socket, reason: HoldReason): void {
  const { holds } = connectionState(socket)
  if (!holds[reason]) return
  holds[reason] = false
  if (!holds.throttle && !holds.pipeline) endHold(socket)
}

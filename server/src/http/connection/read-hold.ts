import type { Socket } from 'node:net'

/** Why a connection is not read: it sent too much in a tick, or has as many requests in flight as it may. */
export type HoldReason = 'throttle' | 'pipeline'

const holds = new WeakMap<Socket, Set<HoldReason>>()

/** Stops reading `socket`, even when other code resumes it, until every reason is released. */
export function holdReading(socket: Socket, reason: HoldReason): void {
  const reasons = holds.get(socket) ?? new Set()
  holds.set(socket, reasons.add(reason))
  if (reasons.size > 1) return
  socket.pause()
  socket.resume = () => socket
}

export function releaseReading(socket: Socket, reason: HoldReason): void {
  const reasons = holds.get(socket)
  if (reasons?.delete(reason) !== true || reasons.size > 0) return
  Reflect.deleteProperty(socket, 'resume')
  socket.resume()
}

import type { Socket } from 'node:net'
import { REQUEST_TIMEOUT_MS } from '../../base/limits.ts'
import { connectionState, type SocketWait } from './connection-state.ts'

/**
 * Arms the idle timer: `socket` emits `timeout` after REQUEST_TIMEOUT_MS without activity.
 *
 * A socket has one idle timer but two waiters, body and drain: clearing one must not disarm the other.
 */
export function armTimeout(socket: Socket, what: SocketWait): void {
  connectionState(socket).waits[what] = true
  socket.setTimeout(REQUEST_TIMEOUT_MS)
}

/** Ends a wait that succeeded; without other waits, `socket` may be idle. */
export function disarmTimeout(socket: Socket, what: SocketWait): void {
  const { waits } = connectionState(socket)
  waits[what] = false
  if (!waits.body && !waits.drain) socket.setTimeout(0)
}

/** Drops a wait that no longer matters, and leaves the idle timer, which belongs to other code by now. */
export function dropWait(socket: Socket, what: SocketWait): void {
  connectionState(socket).waits[what] = false
}

export function isWaitedFor(socket: Socket, what: SocketWait): boolean {
  return connectionState(socket).waits[what]
}

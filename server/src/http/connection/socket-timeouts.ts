import type { Socket } from 'node:net'
import { REQUEST_TIMEOUT_MS } from '../../base/limits.ts'

/** Reason to wait for a connection: more of a body, or the client taking the written data. */
export type SocketWait = 'body' | 'drain'

/**
 * Pending waits by connection. A socket has one idle timer but two waiters, body and drain: clearing one must not disarm the
 * other.
 */
const waits = new WeakMap<Socket, Set<SocketWait>>()

/** Arms the idle timer: `socket` emits `timeout` after REQUEST_TIMEOUT_MS without activity. */
export function armTimeout(socket: Socket, what: SocketWait): void {
  const all = waits.get(socket) ?? new Set()
  waits.set(socket, all.add(what))
  socket.setTimeout(REQUEST_TIMEOUT_MS)
}

/** Ends a wait that succeeded; without other waits, `socket` may be idle. */
export function disarmTimeout(socket: Socket, what: SocketWait): void {
  dropWait(socket, what)
  if (!isWaitedFor(socket)) socket.setTimeout(0)
}

/** Drops a wait that no longer matters, and leaves the idle timer, which belongs to other code by now. */
export function dropWait(socket: Socket, what: SocketWait): void {
  waits.get(socket)?.delete(what)
}

export function isWaitedFor(socket: Socket, what?: SocketWait): boolean {
  const all = waits.get(socket)
  if (all === undefined) return false
  return what === undefined ? all.size > 0 : all.has(what)
}

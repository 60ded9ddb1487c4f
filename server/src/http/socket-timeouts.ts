import type { Socket } from 'node:net'
import { REQUEST_TIMEOUT_MS } from '../base/limits.ts'

/** What a connection may be waited for: more of a body, or that it takes what was written. */
export type SocketWait = 'body' | 'drain'

/**
 * What is waited for on each connection. It has one timer for how long it may be silent, and two who wait: neither may
 * take away what the other still needs.
 */
const waits = new WeakMap<Socket, Set<SocketWait>>()

/** From now on `socket` is told of by `timeout` when nothing happens on it for REQUEST_TIMEOUT_MS. */
export function armTimeout(socket: Socket, what: SocketWait): void {
  const all = waits.get(socket) ?? new Set()
  waits.set(socket, all.add(what))
  socket.setTimeout(REQUEST_TIMEOUT_MS)
}

/** It has come; without anything else that is waited for, `socket` may be silent. */
export function disarmTimeout(socket: Socket, what: SocketWait): void {
  dropWait(socket, what)
  if (!isWaitedFor(socket)) socket.setTimeout(0)
}

/** It does not matter any more; how long `socket` may be silent is somebody else's business by now. */
export function dropWait(socket: Socket, what: SocketWait): void {
  waits.get(socket)?.delete(what)
}

export function isWaitedFor(socket: Socket, what?: SocketWait): boolean {
  const all = waits.get(socket)
  if (all === undefined) return false
  return what === undefined ? all.size > 0 : all.has(what)
}

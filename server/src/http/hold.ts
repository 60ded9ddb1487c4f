import type { Socket } from 'node:net'

/**
 * Why a connection is not read: it said too much in a turn, its requests wait for answers to earlier ones, or others said so
 * much that it has to wait for the next turn.
 */
export type Holder = 'pace' | 'line' | 'turn'

const holders = new WeakMap<Socket, Set<Holder>>()

/** Has nothing more read of `socket`, whoever asks for it, until all who hold it have let go. */
export function hold(socket: Socket, holder: Holder): void {
  const all = holders.get(socket) ?? new Set()
  holders.set(socket, all.add(holder))
  if (all.size > 1) return
  socket.pause()
  socket.resume = () => socket
}

export function letGo(socket: Socket, holder: Holder): void {
  const all = holders.get(socket)
  if (all?.delete(holder) !== true || all.size > 0) return
  Reflect.deleteProperty(socket, 'resume')
  socket.resume()
}

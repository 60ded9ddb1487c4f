import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Has Node call `close` once it was given the last response of a connection, instead of closing it when that has left. */
export function closeLastResponseBy(socket: Socket, close: () => void): void {
  socket.destroySoon = close
}

/** Keeps the connections that `kept` returns when `server` closes those that are idle. */
export function keepFromIdleClose(server: Server, kept: () => readonly Socket[]): void {
  const closeIdleConnections = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const sockets = kept()
    for (const it of sockets) it.destroy = () => it
    closeIdleConnections()
    for (const it of sockets) Reflect.deleteProperty(it, 'destroy')
  }
}

/** Has `before` called with the error, if any, whenever `socket` is about to be destroyed. */
export function beforeDestroy(socket: Socket, before: (error: Error | null) => void): void {
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error?: Error) => {
    before(error ?? null)
    return destroy(error)
  }
}

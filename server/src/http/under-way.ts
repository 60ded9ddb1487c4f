import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is to be answered on each connection, in the order in which it was asked. */
const underWay = new WeakMap<Socket, Set<ServerResponse>>()

/** Takes note of a request that is to be answered by `response`, until that has happened. */
export function noteUnderWay(response: ServerResponse): void {
  const { socket } = response.req
  const all = underWay.get(socket) ?? new Set()
  underWay.set(socket, all.add(response))
  response.once('close', () => all.delete(response))
}

/** Returns what is still to be answered on `socket`, or has an answer that has not left whole. */
export function underWayOn(socket: Socket): readonly ServerResponse[] {
  return [...(underWay.get(socket) ?? [])].filter((it) => !it.writableFinished && !it.destroyed)
}

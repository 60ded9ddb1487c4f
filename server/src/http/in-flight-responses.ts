import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is to be answered on each connection, in the order in which it was asked. */
const inFlight = new WeakMap<Socket, Set<ServerResponse>>()

/** Takes note of a request that is to be answered by `response`, until that has happened. */
export function trackInFlight(response: ServerResponse): void {
  const { socket } = response.req
  const all = inFlight.get(socket) ?? new Set()
  inFlight.set(socket, all.add(response))
  response.once('close', () => all.delete(response))
}

/** Returns what is still to be answered on `socket`, or has an answer that has not left whole. */
export function inFlightOn(socket: Socket): readonly ServerResponse[] {
  return [...(inFlight.get(socket) ?? [])].filter((it) => !it.writableFinished && !it.destroyed)
}

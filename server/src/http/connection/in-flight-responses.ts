import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Unfinished responses by connection, in the order of their requests. */
const inFlight = new WeakMap<Socket, Set<ServerResponse>>()

/** Tracks `response` until it has been sent. */
export function trackInFlight(response: ServerResponse): void {
  const { socket } = response.req
  const all = inFlight.get(socket) ?? new Set()
  inFlight.set(socket, all.add(response))
  response.once('close', () => all.delete(response))
}

/** Returns the responses on `socket` that are not closed: not even the kernel has taken all of them. Live, oldest first. */
export function inFlightOf(socket: Socket): ReadonlySet<ServerResponse> {
  return inFlight.get(socket) ?? NONE
}

/** Returns the responses on `socket` that are still to be made or have not been sent whole. */
export function inFlightOn(socket: Socket): readonly ServerResponse[] {
  return [...(inFlight.get(socket) ?? [])].filter((it) => !it.writableFinished && !it.destroyed)
}

const NONE: ReadonlySet<ServerResponse> = new Set()

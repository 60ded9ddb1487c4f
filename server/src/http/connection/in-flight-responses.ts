import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connectionState } from './connection-state.ts'

/** Tracks `response` until it has been sent. */
export function trackInFlight(response: ServerResponse): void {
  const { inFlight } = connectionState(response.req.socket)
  inFlight.add(response)
  response.once('close', () => inFlight.delete(response))
}

/** Returns the responses on `socket` that are still to be made or have not been sent whole. */
export function inFlightOn(socket: Socket): readonly ServerResponse[] {
  const all = [...connectionState(socket).inFlight]
  return all.filter((it) => !it.writableFinished && !it.destroyed)
}

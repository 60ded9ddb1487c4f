import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is to be answered on each connection, in the order in which it was asked; the finished are taken out as others come. */
const underWay = new WeakMap<Socket, ServerResponse[]>()

/** Takes note of a request that is to be answered by `response`. */
export function noteUnderWay(response: ServerResponse): void {
  const { socket } = response.req
  const all = underWay.get(socket)
  if (all === undefined) underWay.set(socket, [response])
  else {
    takeOutFinished(all)
    all.push(response)
  }
}

/** Returns what is still to be answered on `socket`, or has an answer that has not left whole. */
export function underWayOn(socket: Socket): readonly ServerResponse[] {
  const all = underWay.get(socket) ?? []
  takeOutFinished(all)
  return all
}

/** They finish in their order. */
function takeOutFinished(all: ServerResponse[]): void {
  while (all[0] !== undefined && (all[0].writableFinished || all[0].destroyed)) all.shift()
}

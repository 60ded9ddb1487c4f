import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What was asked on a connection. */
export interface Line {
  /** What is to be answered, in the order in which it was asked. */
  readonly all: Set<ServerResponse>
  /** Of those the last, which are not begun yet. */
  readonly waiting: { readonly response: ServerResponse; readonly begin: () => void }[]
}

const lines = new WeakMap<Socket, Line>()

export function lineOf(socket: Socket): Line {
  let line = lines.get(socket)
  if (line === undefined) {
    line = { all: new Set(), waiting: [] }
    lines.set(socket, line)
  }
  return line
}

/** Returns what is still to be answered on `socket`, or has an answer that has not left whole. */
export function underWayOn(socket: Socket): readonly ServerResponse[] {
  return [...(lines.get(socket)?.all ?? [])].filter((it) => !it.writableFinished && !it.destroyed)
}

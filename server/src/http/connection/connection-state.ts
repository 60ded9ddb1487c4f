import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InProcessCaller } from '../../base/access.ts'
import type { PipelinedConnection } from './pipelining.ts'

/**
 * What http/ knows of one connection; each part is changed only by the module it names. Nothing else keeps data by socket, but
 * the throttle's list of connections that it paused.
 */
export class ConnectionState {
  /** Unfinished responses, in the order of their requests: in-flight-responses.ts. */
  readonly inFlight = new Set<ServerResponse>()
  /** Why it is not read: read-hold.ts. */
  readonly holds = { throttle: false, pipeline: false }
  /** What its idle timer runs for: socket-timeouts.ts. */
  readonly waits = { body: false, drain: false }
  /**
   * What it sent in the latest tick in which it sent anything, and chunks announced to the throttle before they came:
   * connection-throttle.ts.
   */
  readonly sent = { tick: -1, requests: 0, foreseen: 0 }
  /** The requests with whose response it closes; none yet if it stays open: framing.ts. */
  readonly lastRequests: IncomingMessage[] = []
  /** The response during which a body may take its time to come in: framing.ts. */
  unhurried: ServerResponse | null = null
  /** Null if nothing bounds its requests in flight: pipelining.ts. */
  pipelined: PipelinedConnection | null = null
  /** Null for a network connection: in-process-connections.ts. */
  inProcessCaller: InProcessCaller | null = null
}

/** Why a connection is not read: it sent too much in a tick, or has as many requests in flight as it may. */
export type HoldReason = keyof ConnectionState['holds']

/** Reason to wait for a connection: more of a body, or the client taking the written data. */
export type SocketWait = keyof ConnectionState['waits']

/** Returns the state of the connection; the same object as long as the socket exists. */
export function connectionState(socket: object): ConnectionState {
  let state = states.get(socket)
  if (state === undefined) states.set(socket, (state = new ConnectionState()))
  return state
}

const states = new WeakMap<object, ConnectionState>()

/**
 * The outside world, in the harness's own process, which is never killed: counts the effects of code, and keeps the
 * callbacks it receives.
 */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../src/base/json.ts'
import { diceOf } from '../../crash/dice.ts'

/** A callback as it came. */
export interface ReceivedCallback {
  /** Which job it is about, as its address says. */
  readonly job: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly body: JsonObject
  /** Status of the response; 200 is an acknowledgement. */
  readonly status: number
  /** How many kills there had been. */
  readonly kill: number
}

const CERTIFICATES = new URL('../kit/certificates/', import.meta.url)

/** A thing that jobs call while they run, and that their results are sent to. */
export class CallbackReceiver {
  /** How often the code of each job has done what it does. */
  readonly effects = new Map<number, number>()
  readonly received: ReceivedCallback[] = []
  kill = 0
  #events = 0
  #waiting: { readonly until: number; readonly resolve: () => void } | null = null
  readonly #seed: number
  readonly #server: Server

  constructor(seed: number) {
    this.#seed = seed
    this.#server = createServer(
      {
        key: readFileSync(new URL('server.key', CERTIFICATES)),
        cert: readFileSync(new URL('destination.pem', CERTIFICATES)),
      },
      (request, response) => void this.#serve(request, response),
    )
  }

  async listen(): Promise<number> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done))
    return (this.#server.address() as AddressInfo).port
  }

  /** Resolves when `events` more runs and callbacks have come, at once for none. */
  async after(events: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting = { until: this.#events + events, resolve }
    this.#look()
    await promise
  }

  #look(): void {
    if (this.#waiting !== null && this.#events >= this.#waiting.until) this.#waiting.resolve()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => {})
    response.on('error', () => {})
    const [, what, name] = request.url!.split('/')
    const job = Number(name)
    this.#events++
    this.#look()
    // Counted on arrival: a process that dies while it waits for the response has caused the effect all the same.
    if (what === 'effect') this.effects.set(job, (this.effects.get(job) ?? 0) + 1)
    let sent: string
    try {
      sent = await text(request)
    } catch {
      return
    }
    const dice = diceOf(this.#seed, job)
    const pause = dice() * PAUSE_MS_MAX
    if (what === 'effect') {
      await sleep(pause)
      response.end('{}')
      return
    }
    const status = dice() < WANTS_NO_MORE ? 410 : 200
    this.received.push({
      job,
      headers: request.headers,
      text: sent,
      body: JSON.parse(sent) as JsonObject,
      status,
      kill: this.kill,
    })
    await sleep(pause)
    response.writeHead(status).end()
  }
}

/** Long enough for a kill to fall into. */
const PAUSE_MS_MAX = 60

/** Of the callbacks; those become dead letters. */
const WANTS_NO_MORE = 0.1

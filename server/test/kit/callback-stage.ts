/** A reactor stage for invoking, delivering and inspecting callbacks; time passes only on request. */
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { reactorStage, type ReactorStage, type ReactorStageOptions } from './reactor-stage.ts'
import type { SentRequest, StillAnswer } from './still-egress.ts'

export interface CallbackStage extends ReactorStage {
  /** Invokes with a callback to `https://receiver.example/done`; returns the id of the request. */
  readonly invoke: (more?: JsonObject) => Promise<string>
  /** Runs due jobs, and those that become due as a result, until none is left. */
  readonly work: () => Promise<void>
  /** Advances time in steps of a minute, running due jobs at each. */
  readonly pass: (minutes: number) => Promise<void>
  /** The requests sent to receivers, in order. */
  readonly sent: readonly SentRequest[]
  /** Sets the receivers' answer from now on. */
  readonly receive: (answer: (sent: SentRequest) => StillAnswer) => void
  readonly deadLetters: () => Promise<JsonObject[]>
}

export async function callbackStage(options: ReactorStageOptions = {}): Promise<CallbackStage> {
  const stage = await reactorStage(options)
  const { vault, react, manage } = stage
  const { egress, clock } = vault.world
  const { servers } = vault
  const work = async (): Promise<void> => {
    for (let begun = true; begun;) {
      begun = false
      const { jobs } = servers.next()
      jobs.onWork = () => (begun = true)
      await jobs.poll()
      await jobs.settled()
    }
  }
  return {
    ...stage,
    invoke: async (more = {}) => {
      const reply = await react({ args: { a: 1 }, callback_url: RECEIVER, ...more })
      assert.equal(reply.status, 202, reply.text)
      return reply.headers['bt-reactor-request-id']!
    },
    work,
    pass: async (minutes) => {
      for (let n = 0; n < minutes; n++) {
        clock.pass(60_000)
        await work()
      }
    },
    sent: egress.sent,
    receive: (answer) => void (egress.reply = answer),
    deadLetters: async () => {
      const reply = await manage('GET', '/callbacks')
      assert.equal(reply.status, 200, reply.text)
      return reply.json()['data'] as JsonObject[]
    },
  }
}

export const RECEIVER = 'https://receiver.example/done'

/** Returns the headers of a sent request, by name. */
export function headersOf({ headers }: SentRequest): Record<string, string> {
  const pairs = headers.flatMap((it, n) => (n % 2 === 0 ? [[it, headers[n + 1]!]] : []))
  return Object.fromEntries(pairs) as Record<string, string>
}

export function bodyOf({ body }: SentRequest): Json {
  return JSON.parse(body.toString()) as Json
}

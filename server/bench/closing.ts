/**
 * Counts the requests that a proxy answers with 502 because the destination closed the connection that it reused. The
 * destination is a correct one: it announces no close, answers every request that it received, and closes 0 to 3 ms after
 * an answer. Decision 0068.
 */
import { Agent, request } from 'node:http'
import { SERVER_CORE } from './rows.ts'
import { startSubject } from './subjects.ts'

const REQUESTS = 20_000

export interface Closing {
  readonly method: 'POST' | 'GET'
  /** Requests in flight. */
  readonly concurrent: number
  readonly requests: number
  /** How many were answered with 502. */
  readonly failures: number
  /** Connections that the destination accepted meanwhile. */
  readonly connections: number
}

/** Sends REQUESTS writes and as many reads, one at a time and many at a time, each through a vault of its own. */
export async function measureClosing(): Promise<Closing[]> {
  const measured: Closing[] = []
  for (const method of ['POST', 'GET'] as const) {
    for (const concurrent of [1, 32]) measured.push(await measureOne(method, concurrent))
  }
  return measured
}

async function measureOne(method: Closing['method'], concurrent: number): Promise<Closing> {
  const destination = await startSubject('closing-destination', SERVER_CORE + 1)
  const vault = await startSubject('proxying', SERVER_CORE)
  const agent = new Agent({ keepAlive: true, maxSockets: concurrent })
  const headers = {
    'bt-api-key': vault.key,
    'bt-proxy-url': `http://127.0.0.1:${destination.port}`,
  }
  let [left, failures] = [REQUESTS, 0]
  const call = (): Promise<number> => {
    const options = { agent, host: '127.0.0.1', port: vault.port, path: '/proxy/', method, headers }
    return new Promise((resolve, reject) => {
      const asked = request(options, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode!))
      })
      asked.on('error', reject).end(method === 'POST' ? '{"amount":1234}' : undefined)
    })
  }
  const caller = async (): Promise<void> => {
    while (left-- > 0) {
      const status = await call()
      if (status === 502) failures++
      else if (status !== 200) throw new Error(`A request was answered ${status}`)
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrent }, caller))
    const connections = await acceptedBy(destination.port)
    return { method, concurrent, requests: REQUESTS, failures, connections }
  } finally {
    agent.destroy()
    await vault.stop()
    await destination.stop()
  }
}

/** Returns the number of connections that a closingDestination() accepted before this one. */
async function acceptedBy(port: number): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  request({ host: '127.0.0.1', port, agent: false }, (answer) => {
    answer.resume().on('end', () => resolve(Number(answer.headers['accepted']) - 1))
  }).end()
  return await promise
}

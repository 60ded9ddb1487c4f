/** A service whose reactors attack it, and what that costs its process. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CONNECTIONS_MAX, WINDOW_BYTES } from '../../../src/adapters/jail/guest/frames.ts'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import type { ReactorLevel } from '../../../src/ports/reactor-runner.ts'
import { startVault } from '../../kit/running-vault.ts'
import { onRequest, testDestination } from '../../kit/test-destination.ts'
import {
  OPENING,
  reactorOf,
  UNREADING,
  type GuestAttack,
  type GuestTargets,
} from './guest-attacks.ts'

/** What an attack cost the service's process. */
export interface GuestCosts {
  /** How its runs ended, and how many did so. */
  readonly ends: Readonly<Record<string, number>>
  /** The most descriptors and memory, beyond those before. */
  readonly descriptors: number
  readonly mib: number
  /** Connections that the destinations accepted. */
  readonly accepted: number
  readonly probes: number
  /** Answers about readiness, of those that were not 200. */
  readonly unready: readonly string[]
  /** Descriptors that are left, beyond those before. */
  readonly left: number
}

export interface CostlyGuests {
  /** Repeats an attack for `seconds`, and measures what it costs. */
  readonly attack: (attack: GuestAttack, seconds: number) => Promise<GuestCosts>
  /** Rejects if the service does not stop as it should. */
  readonly stop: () => Promise<void>
}

export interface CostlyGuestsOptions {
  readonly level: ReactorLevel
  /** Empty; for the vault. */
  readonly folder: string
  /** Another version; by default this one. */
  readonly checkout?: string | undefined
}

/** Longer than code goes on that is ended; shorter than a run may take. */
const ENDED_MS = 25_000
/** Far longer than it takes to close what is left of an attack. */
const PATIENCE_MS = 120_000
/** The interval between two looks. */
const LOOK_MS = 100
/** What the service's memory may grow by itself, while it answers and collects nothing. */
const MEMORY_MIB_MAX = 128
/** Descriptors that come and go by themselves: prewarmed processes, and requests. */
const DESCRIPTORS_SPARE = 30

export async function startCostlyGuests(options: CostlyGuestsOptions): Promise<CostlyGuests> {
  const { level, folder, checkout } = options
  const destinations = await openDestinations()
  const variables = {
    SYMBOLON_REACTOR_LEVEL: level,
    SYMBOLON_EGRESS_ALLOW: '127.0.0.0/8',
    SYMBOLON_LOG_LEVEL: 'error',
  }
  const vault = await startVault(join(folder, 'data'), variables, checkout)
  const management = /^\s+api_key\s+(\S+)$/m.exec(vault.greeting)![1]!
  const rights = { name: 'x', type: 'private', permissions: ['token:create', 'token:use'] }
  const { key, id } = (await call('/applications', management, rights)).json as {
    key: string
    id: string
  }
  const reactors = new Map<string, string>()
  for (const it of [...OPENING, ...UNREADING]) reactors.set(it.name, await made(reactorOf(it)))
  // Loads what runs need, so that it is there before as well as after.
  const calm = await made('module.exports = async ({ bt }) => { await bt.tokenize({ n: 1 }) }')
  for (let n = 0; n < 3; n++) {
    const { status, text } = await call(`/reactors/${calm}/react`, key, { args: {} })
    assert.equal(status, 200, text)
  }

  return {
    attack: async (attack, seconds) => {
      const before = [descriptors(), residentMib()] as const
      let [mostDescriptors, mostMib] = before
      const accepted = destinations.accepted()
      let probes = 0
      const unready: string[] = []
      const over = new AbortController()
      const looking = (async () => {
        while (!over.signal.aborted) {
          const status = await ready()
          probes++
          if (status !== '200') unready.push(status)
          mostDescriptors = Math.max(mostDescriptors, descriptors())
          mostMib = Math.max(mostMib, residentMib())
          await pause(LOOK_MS)
        }
      })()
      const ends: Record<string, number> = {}
      const runs = Array.from({ length: attack.concurrency ?? 1 }, async () => {
        const until = performance.now() + seconds * 1000
        do {
          const left = Math.max(500, Math.round(until - performance.now()))
          const ms = attack.ended ? ENDED_MS : left
          const args = { ...destinations.targets(attack.name), ms }
          const end = endOf(
            await call(`/reactors/${reactors.get(attack.name)!}/react`, key, { args }),
          )
          ends[end] = (ends[end] ?? 0) + 1
        } while (!attack.ended && performance.now() < until)
      })
      await Promise.all(runs)
      const given = performance.now() + PATIENCE_MS
      const closed = (): boolean => descriptors() <= before[0] + DESCRIPTORS_SPARE
      while (!closed() && performance.now() < given) await pause(LOOK_MS)
      over.abort()
      await looking
      return {
        ends,
        descriptors: mostDescriptors - before[0],
        mib: mostMib - before[1],
        accepted: destinations.accepted() - accepted,
        probes,
        unready,
        left: descriptors() - before[0],
      }
    },
    stop: async () => {
      const { status, err } = await vault.stop()
      await destinations.close()
      assert.equal(status, 0, err)
    },
  }

  async function made(code: string): Promise<string> {
    const reactor = { name: 'x', code, configuration: {}, application: { id } }
    const { status, json, text } = await call('/reactors', management, reactor)
    assert.equal(status, 201, text)
    return json['id'] as string
  }

  async function call(path: string, key: string, body: Json): Promise<GuestReply> {
    const headers = { 'bt-api-key': key, 'content-type': 'application/json' }
    const reply = await fetch(vault.url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const text = await reply.text()
    return { status: reply.status, text, json: JSON.parse(text) as JsonObject }
  }

  /** Asks over a connection of its own, as a load balancer would. */
  async function ready(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    request(`${vault.url}/health/ready`, { agent: false }, (response) => {
      response.on('error', ({ message }) => resolve(message)).resume()
      response.on('end', () => resolve(String(response.statusCode)))
    })
      .on('error', ({ message }) => resolve(message))
      .end()
    return await promise
  }

  function descriptors(): number {
    return readdirSync(`/proc/${vault.pid}/fd`).length
  }

  function residentMib(): number {
    const status = readFileSync(`/proc/${vault.pid}/status`, 'latin1')
    return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1024)
  }
}

/** Returns what is wrong with the costs of an attack; empty if nothing is. */
export function excessOf({ ends, concurrency = 1 }: GuestAttack, costs: GuestCosts): string {
  const descriptorsMax = concurrency * CONNECTIONS_MAX + DESCRIPTORS_SPARE
  const others = Object.keys(costs.ends).filter((it) => !ends.some((end) => end === it))
  return [
    ...others.map((it) => `A run ended as ${it}.`),
    ...(costs.descriptors > descriptorsMax ? ['Too many descriptors.'] : []),
    ...(costs.left > DESCRIPTORS_SPARE ? ['Descriptors are left.'] : []),
    ...(costs.mib > MEMORY_MIB_MAX ? ['Too much memory.'] : []),
    ...(costs.unready.length > 0 ? ['It was not ready.'] : []),
  ].join(' ')
}

interface GuestReply {
  readonly status: number
  readonly text: string
  readonly json: JsonObject
}

function endOf({ status, json }: GuestReply): string {
  if (status < 400) return String(status)
  const { errors, code } = json as { code: string; errors: { error: [string] } }
  return `${status} ${code}: ${errors.error[0]}`
}

/** Each attack has hosts of its own, since the service counts failures by host. */
async function openDestinations() {
  const names = [...OPENING, ...UNREADING].map((it) => it.name)
  const hosts = names.map((_, n) => `127.0.0.${100 + n}`)
  // Failures at the one must not keep it from the others.
  const opened = names.map((_, n) => `127.0.0.${150 + n}`)
  const silent = await silentServer(hosts)
  const servers = {
    open: await Promise.all(opened.map((it) => testDestination(REPLY, null, it))),
    secure: await Promise.all(
      opened.map((it) => testDestination(REPLY, { certificate: 'destination' }, it)),
    ),
    trickling: await Promise.all(opened.map((it) => testDestination(trickle, null, it))),
    flooding: await Promise.all(opened.map((it) => testDestination(flood, null, it))),
  }
  const all = Object.values(servers).flat()
  return {
    targets: (name: string): Omit<GuestTargets, 'ms'> => {
      const n = names.indexOf(name)
      const host = opened[n]!
      return {
        silent: { host: hosts[n]!, port: silent.ports[n]! },
        open: { host, port: servers.open[n]!.port },
        secure: { host, port: servers.secure[n]!.port },
        trickling: { host, port: servers.trickling[n]!.port },
        flooding: { host, port: servers.flooding[n]!.port },
      }
    },
    accepted: () => all.reduce((sum, it) => sum + it.accepted(), 0),
    close: async () => {
      silent.close()
      await Promise.all(all.map((it) => it.close()))
    },
  }
}

const REPLY = onRequest((socket) => {
  socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
})

/** Fills the window of a connection first if it is asked to. */
function trickle(socket: Socket): void {
  socket.setNoDelay().once('data', (asked: Buffer) => {
    if (asked.includes('fill')) socket.write(Buffer.alloc(WINDOW_BYTES))
  })
  const sending = setInterval(() => {
    if (socket.writableLength < 1024) socket.write('x')
  }, 1)
  socket.on('close', () => clearInterval(sending))
}

function flood(socket: Socket): void {
  const bytes = Buffer.alloc(64 * 1024)
  const send = (): void => {
    while (socket.write(bytes));
  }
  socket.on('drain', send)
  send()
}

/** A server on loopback addresses that never accepts: connections to it stay half open. */
async function silentServer(
  hosts: readonly string[],
): Promise<{ ports: number[]; close: () => void }> {
  const listen = `const servers = ${JSON.stringify(hosts)}.map((host) =>
    require('net').createServer().listen({ port: 0, host, backlog: 1 }))
  Promise.all(servers.map((it) => require('events').once(it, 'listening'))).then(() =>
    console.log(JSON.stringify(servers.map((it) => it.address().port))))`
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ports = JSON.parse(String((await once(child.stdout, 'data'))[0])) as number[]
  child.kill('SIGSTOP')
  return { ports, close: () => child.kill('SIGKILL') }
}

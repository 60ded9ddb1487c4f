/**
 * Runs in namespaces of its own: every attack once with nothing in its way and once behind the walls, and prints
 * which of them succeeded where.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { JailRunner } from '../../../src/adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../../src/adapters/jail/no-way.ts'
import { Sensitive } from '../../../src/base/sensitive.ts'
import type { Attack, Surroundings } from './attack.ts'
import { JAVASCRIPT_ATTACKS } from './javascript-attacks.ts'
import { NATIVE_ATTACKS } from './native-attacks.ts'

/** What the probe prints. */
export interface Outcome {
  readonly flaw: string | null
  /** Names of attacks, as they went. */
  readonly bare: Readonly<Record<string, boolean>>
  readonly jailed: Readonly<Record<string, boolean>>
  /** Whether a reactor of somebody else answered after all of it. */
  readonly healthy: boolean
}

const BARE = fileURLToPath(new URL('bare.probe.ts', import.meta.url))
const ENDLESS_MS = 1_000

const canary = process.env['CANARY']!
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-attacks-'))
const secretFile = path.join(folder, 'secret')
writeFileSync(secretFile, canary, { mode: 0o600 })

const answer = createServer((socket) => {
  socket.on('error', () => socket.destroy()).end(`HTTP/1.1 200 OK\r\n\r\n`)
})
answer.listen(0, '::')
const [unixSocket, abstractSocket] = [path.join(folder, 'socket'), '\0symbolon-attacks']
const servers = [answer]
for (const it of [unixSocket, abstractSocket]) {
  servers.push(createServer((socket) => socket.on('error', () => {}).end(canary)).listen(it))
}
await Promise.all(servers.map((it) => once(it, 'listening')))
let packets = 0
const sink = createSocket('udp4').on('message', () => (packets += 1))
await once(sink.bind(0, '127.0.0.1'), 'listening')

let victim = startVictim()
const runner = await JailRunner.open({
  level: 'jail',
  packages: ['koffi', '@koromix/koffi-linux-x64'],
  authorities: [],
  waysOut: NO_WAY,
  checks: false,
})
const bare: Record<string, boolean> = {}
const jailed: Record<string, boolean> = {}
for (const attack of [...JAVASCRIPT_ATTACKS, ...NATIVE_ATTACKS]) {
  jailed[attack.name] = await attempt(attack, inJail)
  bare[attack.name] = await attempt(attack, inTheOpen)
}
const last = await inJail({ name: 'last', code: 'return "healthy"' })
const outcome: Outcome = { flaw: runner.flaw, bare, jailed, healthy: last === 'healthy' }
process.stdout.write(JSON.stringify(outcome))
await runner.close()
rmSync(folder, { recursive: true, force: true })
process.exit()

async function attempt(
  attack: Attack,
  how: (attack: Attack) => Promise<unknown>,
): Promise<boolean> {
  if (victim.exitCode !== null || victim.signalCode !== null) victim = startVictim()
  packets = 0
  const returned = await how(attack)
  // What was sent is there by the next turn of the loop: loopback delivers at once.
  await new Promise((resolve) => void setImmediate(resolve))
  await new Promise((resolve) => void setImmediate(resolve))
  if (attack.seen === 'packets') return packets > 0
  if (attack.seen === 'victim') return await isDying(victim)
  return Boolean(returned)
}

/** A signal that was sent has ended it before the next process could be started and ended. */
async function isDying(child: ChildProcess): Promise<boolean> {
  await once(spawn('/bin/true'), 'close')
  return child.signalCode !== null
}

async function inJail({ name, code, next, endless }: Attack): Promise<unknown> {
  const timeoutMs = endless === true ? ENDLESS_MS : 20_000
  const first = await runner.run(jobOf(`attacker ${name}`, code, timeoutMs))
  if (next === undefined) return resultOf(first)
  return resultOf(await runner.run(jobOf(`neighbour ${name}`, next, timeoutMs)))
}

function jobOf(
  tenantId: string,
  body: string,
  timeoutMs: number,
): Parameters<typeof runner.run>[0] {
  return {
    tenantId,
    reactorId: 'reactor',
    version: '1',
    code: `module.exports = async ({ args }) => { ${body} }`,
    args: new Sensitive(JSON.stringify(surroundings())),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs,
  }
}

function resultOf(outcome: Awaited<ReturnType<typeof runner.run>>): unknown {
  return outcome.kind === 'returned' ? JSON.parse(outcome.result.reveal()) : null
}

/** Whatever takes longer than it may has done what it wanted, if it wanted that. */
async function inTheOpen({ code, next, endless }: Attack): Promise<unknown> {
  const child = spawn(process.execPath, [BARE, code, JSON.stringify(surroundings()), next ?? ''], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: endless === true ? ENDLESS_MS : 20_000,
    killSignal: 'SIGKILL',
  })
  let said = ''
  child.stdout.on('data', (it) => (said += it))
  const [, signal] = await once(child, 'close')
  if (endless === true) return signal === 'SIGKILL'
  try {
    return JSON.parse(said.trim().split('\n').at(-1)!).result
  } catch {
    return null
  }
}

function surroundings(): Surroundings {
  return {
    victim: victim.pid!,
    secretFile,
    folder,
    port: portOf(answer.address()),
    udpPort: sink.address().port,
    unixSocket,
    abstractSocket,
    canary,
  }
}

function portOf(address: ReturnType<typeof answer.address>): number {
  return typeof address === 'object' && address !== null ? address.port : 0
}

function startVictim(): ChildProcess {
  return spawn('/bin/sleep', ['1000'], { stdio: 'ignore' })
}

/**
 * Kills launchers with SIGKILL while their server is ready, and measures when another server could take its place: its port
 * and the lock on its data folder.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdDataFolder } from '../../src/adapters/storage/sqlite/data-folder.ts'
import { tryBinding } from '../../src/http/listen.ts'
import { bareEnvironment } from '../kit/environment.ts'

/** `unwatched`: the server does not watch its launcher. */
export const LAUNCHER_WEAKNESSES = ['unwatched'] as const
export type LauncherWeakness = (typeof LAUNCHER_WEAKNESSES)[number]

export interface LauncherRun {
  /** Holds the vault; made if it is not there. */
  readonly dataFolder: string
  /** An old Node that cannot replace its own process, and the launcher. */
  readonly command: readonly string[]
  readonly kills: number
  /** How long the port and the data folder are waited for. */
  readonly waitMs: number
  readonly onKill?: (kill: LauncherKill) => void
}

export interface LauncherKill {
  /** Whether a request was in flight, which a graceful stop waits for. */
  readonly inFlight: boolean
  /** Milliseconds from the kill until the port could be bound; infinite when it could not be in `waitMs`. */
  readonly portMs: number
  /** The same for the lock on the data folder. */
  readonly folderMs: number
}

const SERVER = path.join(import.meta.dirname, '../..')
const BUNDLED = `node-${process.platform}-${process.arch}`

/** Returns the version of Node that `command` runs; throws when there is no launcher to kill with it. */
export function oldNodeVersion(command: readonly string[]): string {
  const [program, ...flags] = command
  const asked = 'process.versions.node + " " + typeof process.execve'
  const { stdout, error } = spawnSync(program!, [...flags, '-p', asked], { encoding: 'utf8' })
  if (error !== undefined) throw error
  const [version, execve] = stdout.trim().split(' ')
  if (execve === 'undefined') return version!
  throw new Error(`Node ${version} replaces its own process, so no launcher stays to be killed`)
}

/** Every other kill has a request in flight. */
export async function killLaunchers(run: LauncherRun): Promise<LauncherKill[]> {
  const { dataFolder, command, waitMs, onKill } = run
  const kills: LauncherKill[] = []
  let key = ''
  for (let kill = 0; kill < run.kills; kill++) {
    const { child, port, apiKey } = await serve(command, dataFolder)
    try {
      key = apiKey ?? key
      const request = kill % 2 === 1 ? await requestInFlight(port, key) : null
      const since = performance.now()
      child.kill('SIGKILL')
      const place = { host: 'localhost', port, settings: 'the test' }
      const [portMs, folderMs] = await Promise.all([
        msUntil(async () => await tryBinding(place, []), since, waitMs),
        msUntil(() => holdDataFolder(dataFolder).release(), since, waitMs),
      ])
      request?.destroy()
      kills.push({ inFlight: request !== null, portMs, folderMs })
      onKill?.(kills.at(-1)!)
    } finally {
      await end(child)
    }
  }
  return kills
}

/** Installs a copy of the launcher in `folder`, in front of this source and this Node; returns its path. */
export function installLauncher(folder: string, weakness: LauncherWeakness | null): string {
  const bundled = path.join(folder, 'node_modules', BUNDLED)
  mkdirSync(path.join(bundled, 'bin'), { recursive: true })
  writeFileSync(path.join(bundled, 'package.json'), '{}')
  symlinkSync(process.execPath, path.join(bundled, 'bin/node'))
  symlinkSync(path.join(SERVER, 'src'), path.join(folder, 'src'))
  const bin = path.join(folder, 'bin')
  cpSync(path.join(SERVER, 'bin'), bin, { recursive: true })
  if (weakness === 'unwatched') {
    writeFileSync(path.join(bin, 'exit-with-launcher.cjs'), `void import('./symbolon.cjs')`)
  }
  return path.join(bin, 'symbolon.cjs')
}

interface Serving {
  /** The launcher: the first of a process group that it shares with its server alone. */
  readonly child: ChildProcess
  readonly port: number
  /** Printed by the first start only. */
  readonly apiKey: string | undefined
}

async function serve(command: readonly string[], dataFolder: string): Promise<Serving> {
  const [program, ...args] = command
  const child = spawn(program!, [...args, 'serve'], {
    env: { ...bareEnvironment(), SYMBOLON_DATA_DIR: dataFolder, SYMBOLON_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  let out = ''
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    out += String(chunk)
    const port = /is ready at http:\/\/localhost:(\d+)/.exec(out)?.[1]
    if (port === undefined) continue
    child.stdout.resume()
    return { child, port: Number(port), apiKey: /^\s+api_key\s+(\S+)$/m.exec(out)?.[1] }
  }
  throw new Error(`The server ended before it was ready: ${out}`)
}

/** Sends the header section of a request, and resolves when the server waits for its body. */
async function requestInFlight(port: number, apiKey: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  const header = ['POST /applications HTTP/1.1', 'Host: localhost', `BT-API-KEY: ${apiKey}`]
  const body = ['Content-Type: application/json', 'Content-Length: 100', 'Expect: 100-continue']
  socket.write([...header, ...body, '', ''].join('\r\n'))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 100 /)
  return socket.resume()
}

/** Tries until `attempt` succeeds; returns the milliseconds from `since` until then. */
async function msUntil(
  attempt: () => Promise<void> | void,
  since: number,
  waitMs: number,
): Promise<number> {
  while (performance.now() - since < waitMs) {
    try {
      await attempt()
      return performance.now() - since
    } catch {
      await sleep(2)
    }
  }
  return Infinity
}

/** Kills the rest of the launcher's process group, and resolves when none of it holds its standard output any more. */
async function end(child: ChildProcess): Promise<void> {
  const closed = child.stdout!.closed ? null : once(child.stdout!, 'close')
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  await closed
}

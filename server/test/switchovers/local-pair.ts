/** Two PostgreSQL servers of the test kit that change roles, managed by the test itself. */
import { chownSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dice } from '../../crash/dice.ts'
import { replaceByBackup } from '../kit/postgres/base-backup.ts'
import type { Cluster } from '../kit/postgres/cluster.ts'
import { meddlingProxy, type MeddlingProxy } from '../kit/postgres/meddling-proxy.ts'
import { query } from '../kit/postgres/query.ts'
import { caughtUp, startReplicatedCluster } from '../kit/postgres/standby.ts'
import { bringDown } from '../outages/kills.ts'
import type { FailoverPair, LoadDuringEvent } from './failover-pair.ts'

export interface LocalPairOptions {
  /** Whether a commit waits for the standby; without that, a kill loses what was acknowledged. */
  readonly synchronous: boolean
}

/**
 * One address leads through a proxy, which follows a switchover late and leaves connections where they are; the other names
 * both hosts.
 */
export async function startLocalPair(options: LocalPairOptions): Promise<FailoverPair> {
  const cluster = await startReplicatedCluster()
  const proxy = await meddlingProxy(cluster.primary.url)
  const folders = [cluster.primary, cluster.standby].map(socketFolderOf)
  const listed = `postgres://postgres@localhost/postgres?host=${folders.join(',')}`
  const pair = new LocalPair(cluster.primary, cluster.standby, proxy, options)
  const stop = async (): Promise<void> => {
    await proxy.close()
    await cluster.stop()
  }
  try {
    await pair.replicate()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    addresses: [proxy.url, listed],
    primaryUrl: async () => pair.primary.url,
    switchOver: (dice, load) => pair.switchOver(dice, load),
    kill: (dice, load) => pair.kill(dice, load),
    stop,
  }
}

class LocalPair {
  primary: Cluster
  #standby: Cluster
  readonly #proxy: MeddlingProxy
  readonly #synchronous: boolean

  constructor(
    primary: Cluster,
    standby: Cluster,
    proxy: MeddlingProxy,
    { synchronous }: LocalPairOptions,
  ) {
    this.primary = primary
    this.#standby = standby
    this.#proxy = proxy
    this.#synchronous = synchronous
  }

  /** Makes the primary wait for its standby, and resolves once that has caught up. */
  async replicate(): Promise<void> {
    configure(this.primary, this.#standby, this.#synchronous)
    configure(this.#standby, this.primary, this.#synchronous)
    for (const it of [this.primary, this.#standby]) await reload(it)
    const state = this.#synchronous ? `sync_state = 'sync'` : `state = 'streaming'`
    const follows = `SELECT 1 FROM pg_stat_replication WHERE ${state}`
    while ((await query(this.primary.url, follows)).rows.length === 0) await sleep(LOOK_MS)
    await caughtUp(this.primary, this.#standby)
  }

  /**
   * The proxy goes on leading to the former primary while that is a standby already. It replays nothing meanwhile, so that
   * each of its answers would be an old one.
   */
  async switchOver(dice: Dice, load: LoadDuringEvent): Promise<void> {
    const [old, next] = [this.primary, this.#standby]
    this.#proxy.hidesStandby = dice() < HIDDEN_SHARE
    load.gone('switchover')
    await old.halt()
    const promotesFirst = dice() < 0.5
    if (promotesFirst) await promote(next)
    makeStandby(old)
    await old.restart()
    if (!promotesFirst) await promote(next)
    this.#swap()
    await this.replicate()
    await query(old.url, 'SELECT pg_wal_replay_pause()')
    // Until whoever takes a standby for a primary is connected to it.
    await load.answers(ANSWERS_OF_STANDBY)
    this.#proxy.switchTo(next.url)
    load.reachable()
    await load.probe()
    await query(old.url, 'SELECT pg_wal_replay_resume()')
    await caughtUp(next, old)
  }

  /** Stops replication before the kill: what is acknowledged although it never left the primary is lost. */
  async kill(dice: Dice, load: LoadDuringEvent): Promise<void> {
    const [old, next] = [this.primary, this.#standby]
    if (dice() < STALLED_SHARE || !this.#synchronous) {
      const senders = await query(old.url, 'SELECT pid FROM pg_stat_replication')
      for (const { pid } of senders.rows) process.kill(pid, 'SIGSTOP')
      await load.answers(ANSWERS_OF_STALLED)
    }
    // As a manager does that prefers to serve without a standby, or else not.
    const alone = dice() < 0.5
    load.gone(alone ? 'kill' : 'kill, strict')
    await bringDown(old, 'killed')
    if (alone) {
      configure(next, old, false)
      await reload(next)
    }
    await promote(next)
    this.#proxy.switchTo(next.url)
    load.reachable()
    if (alone) await load.answers(ANSWERS_ALONE)
    await replaceByBackup(old, next)
    configure(old, next, this.#synchronous)
    await old.restart()
    this.#swap()
    await this.replicate()
    await load.probe()
  }

  #swap(): void {
    const { primary } = this
    this.primary = this.#standby
    this.#standby = primary
  }
}

const LOOK_MS = 50
/** Switchovers during which the proxy keeps the reports of standbys to itself. */
const HIDDEN_SHARE = 0.3
/** Kills before which the primary can no longer send what it writes. */
const STALLED_SHARE = 0.7
const ANSWERS_OF_STANDBY = 60
const ANSWERS_OF_STALLED = 40
const ANSWERS_ALONE = 60

async function promote(cluster: Cluster): Promise<void> {
  const { rows } = await query(cluster.url, 'SELECT pg_promote() AS it')
  if (rows[0].it !== true) throw new Error('The standby was not promoted')
}

/** Replaces the settings that depend on the role. A running server has to be told to reload. */
function configure(cluster: Cluster, other: Cluster, synchronous: boolean): void {
  const data = join(cluster.folder, 'data')
  const text = [
    `primary_conninfo = 'host=${socketFolderOf(other)} user=postgres'`,
    `synchronous_standby_names = '${synchronous ? '*' : ''}'`,
  ].join('\n')
  writeOwned(join(data, 'postgresql.auto.conf'), `${text}\n`, data)
}

async function reload(cluster: Cluster): Promise<void> {
  await query(cluster.url, 'SELECT pg_reload_conf()')
}

function socketFolderOf({ folder }: Cluster): string {
  return dirname(folder)
}

function makeStandby(cluster: Cluster): void {
  const data = join(cluster.folder, 'data')
  writeOwned(join(data, 'standby.signal'), '', data)
}

/** Writes a file that belongs to the owner of `like`. */
function writeOwned(file: string, text: string, like: string): void {
  writeFileSync(file, text)
  const { uid, gid } = statSync(like)
  chownSync(file, uid, gid)
}

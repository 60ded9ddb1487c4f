import { setTimeout } from 'node:timers/promises'
import { startCluster, type Cluster } from './cluster.ts'
import { query } from './query.ts'

export interface ReplicatedCluster {
  readonly primary: Cluster
  readonly standby: Cluster
  /** Resolves once the standby has replayed what the primary has written. */
  readonly caughtUp: () => Promise<void>
  /** Cuts the standby off: what is written from now on is on the primary alone, and gone once the standby is promoted. */
  readonly cutOff: () => Promise<void>
  readonly stop: () => Promise<void>
}

const REPLICATED = [
  'wal_level=replica',
  'max_wal_senders=4',
  'wal_keep_size=256MB',
  // The standby starts first, and would try again after five seconds.
  'wal_retrieve_retry_interval=50ms',
]

/** Starts a server and a standby that follows it, asynchronously. */
export async function startReplicatedCluster(): Promise<ReplicatedCluster> {
  const primary = await startCluster({ settings: REPLICATED })
  try {
    await primary.halt()
    const standby = await startCluster({ settings: REPLICATED, standbyOf: primary })
    try {
      await primary.restart()
    } catch (error) {
      await standby.stop()
      throw error
    }
    return {
      primary,
      standby,
      caughtUp: () => caughtUp(primary, standby),
      cutOff: async () => {
        const { rows } = await query(primary.url, 'SHOW hba_file')
        const loaded = 'SELECT pg_conf_load_time()::text AS it'
        const before = (await query(primary.url, loaded)).rows[0].it
        // Without a line for replication, which `all` does not include.
        await query(primary.url, `COPY (SELECT 'local all all trust') TO '${rows[0].hba_file}'`)
        await query(primary.url, 'SELECT pg_reload_conf()')
        while ((await query(primary.url, loaded)).rows[0].it === before) await setTimeout(10)
        const end = 'SELECT pg_terminate_backend(pid) FROM pg_stat_replication'
        const receiving = 'SELECT FROM pg_stat_wal_receiver'
        // One that connected before the reload may show up a moment later.
        for (let quiet = 0; quiet < 5; quiet++) {
          const ended = (await query(primary.url, end)).rows.length
          if (ended + (await query(standby.url, receiving)).rows.length > 0) quiet = 0
          await setTimeout(10)
        }
      },
      stop: async () => {
        await standby.stop()
        await primary.stop()
      },
    }
  } catch (error) {
    await primary.stop()
    throw error
  }
}

/** Resolves once the standby has replayed what the primary has written. */
export async function caughtUp(primary: Cluster, standby: Cluster): Promise<void> {
  const { rows } = await query(primary.url, 'SELECT pg_current_wal_lsn() AS lsn')
  const replayed = `SELECT pg_last_wal_replay_lsn() >= '${rows[0].lsn}' AS it`
  while ((await query(standby.url, replayed)).rows[0].it !== true) await setTimeout(50)
}

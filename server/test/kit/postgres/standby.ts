import { setTimeout } from 'node:timers/promises'
import { startCluster, type Cluster } from './cluster.ts'
import { query } from './query.ts'

export interface ReplicatedCluster {
  readonly primary: Cluster
  readonly standby: Cluster
  /** Resolves once the standby has replayed what the primary has written. */
  readonly caughtUp: () => Promise<void>
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
      caughtUp: async () => {
        const { rows } = await query(primary.url, 'SELECT pg_current_wal_lsn() AS lsn')
        const replayed = `SELECT pg_last_wal_replay_lsn() >= '${rows[0].lsn}' AS it`
        while ((await query(standby.url, replayed)).rows[0].it !== true) await setTimeout(10)
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

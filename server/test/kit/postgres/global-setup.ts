/** For `node --test --test-global-setup`: one PostgreSQL server for all files of the run. */
import { CLUSTER_VARIABLE, startCluster, type Cluster } from './cluster.ts'

let cluster: Cluster | null = null

export async function globalSetup(): Promise<void> {
  if ((process.env[CLUSTER_VARIABLE] ?? '') !== '') return
  cluster = await startCluster()
  process.env[CLUSTER_VARIABLE] = cluster.url
}

export async function globalTeardown(): Promise<void> {
  await cluster?.stop()
}

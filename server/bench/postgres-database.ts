/** The database of PostgreSQL benchmarks: a server of the benchmark's own, as durable as in production. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { startCluster, type Cluster } from '../test/kit/postgres/cluster.ts'
import { ALL_CORES, place } from './subjects.ts'

/** Starts it from the programs that come with npm; its files lie in the folder for temporary files, as SQLite's do. */
export function startDatabase(): Promise<Cluster> {
  return startCluster({ durable: true, settings: ['shared_buffers=256MB'] })
}

/** Returns the address of a new database. */
export async function newDatabase({ url }: Cluster, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

/** Calls `work` while the database and this process have no more than these cores, as `taskset` names them. */
export async function within<Result>(
  cores: string,
  cluster: Cluster,
  work: () => Promise<Result>,
): Promise<Result> {
  const placeAll = (on: string): void => {
    for (const it of [process.pid, cluster.pid, ...childrenOf(cluster)]) place(it, on)
  }
  placeAll(cores)
  try {
    return await work()
  } finally {
    placeAll(ALL_CORES)
  }
}

/** User and system time so far of all its processes, also of those that have ended, in microseconds. */
export function clusterCpuUs(cluster: Cluster): number {
  let ticks = ticksOf(cluster.pid, 4)
  for (const it of childrenOf(cluster)) ticks += ticksOf(it, 2)
  return ticks * 10_000
}

function childrenOf({ pid }: Cluster): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.trim().split(' ').map(Number)
}

/** The first `count` of: user and system time, and the same of children that have ended. Source: proc(5). */
function ticksOf(pid: number, count: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return fields.slice(11, 11 + count).reduce((total, it) => total + Number(it), 0)
}

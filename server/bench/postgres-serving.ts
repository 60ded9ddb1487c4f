/** Benchmarks the service on PostgreSQL over its sockets: against SQLite, and with two servers on one database. */
import type { Cluster } from '../test/kit/postgres/cluster.ts'
import { load } from './load.ts'
import { clusterCpuUs, newDatabase, within } from './postgres-database.ts'
import { ARRAY_OF_100, CARD, SERVER_CORE, tokenizeBytes } from './rows.ts'
import { shareOfCore, type Share } from './share-of-core.ts'
import { startSubject, type BenchSubject } from './subjects.ts'
import { median } from './table.ts'

// Server, database and callers share two cores: none of them may spin.
const TIMES = { warmupMs: 500, measureMs: 3000 }
const FIRST_WARMUP_MS = 5000

/** Of the database and the callers while the server has its own; the system would put them there as well. */
const OTHER_CORE = `${SERVER_CORE + 1}`

const CARD_CALLS = 64
const ARRAY_CALLS = 32

/** One way to serve, and what it came to; medians. */
export interface Served {
  readonly name: string
  readonly perSecond: number
  /** Processor time of one request: of the servers, and of all processes of the database. */
  readonly serverUs: number
  readonly databaseUs: number
  readonly p50Us: number
  readonly p99Us: number
}

interface ServingCase {
  readonly name: string
  readonly subjects: readonly BenchSubject[]
  readonly body: string
  /** Requests in flight, on all servers together. */
  readonly calls: number
}

/** Cards on SQLite and on PostgreSQL: the server has one core to itself, all other processes share the other. */
export async function measureCards(
  cluster: Cluster,
  rounds: number,
): Promise<readonly [sqlite: Served, postgres: Served]> {
  const database = await newDatabase(cluster, 'cards')
  const sqlite = await startSubject('durable', SERVER_CORE)
  const postgres = await startSubject('on-postgres', SERVER_CORE, { database })
  const way = (name: string, subject: BenchSubject): ServingCase => {
    return { name, subjects: [subject], body: CARD, calls: CARD_CALLS }
  }
  const ways = [way('card, SQLite', sqlite), way('card, PostgreSQL', postgres)] as const
  return await within(OTHER_CORE, cluster, () => measureWays(cluster, ways, rounds))
}

/**
 * Arrays on one server and on two of the same database; the system schedules all processes freely.
 *
 * On two cores, two servers, the database and the callers compete whatever the servers do. So each server has
 * `share` of a core, if given, as if on a small machine: decision 0043. Null where shares are unavailable.
 */
export async function measureTwoServers(
  cluster: Cluster,
  rounds: number,
  share: number | null,
): Promise<readonly [one: Served, two: Served] | null> {
  const shares: Share[] = []
  if (share !== null) {
    for (let n = 0; n < 2; n++) {
      const own = shareOfCore(share)
      if (own === null) return null
      shares.push(own)
    }
  }
  const about = share === null ? '' : `, ${share} of a core each`
  const database = await newDatabase(cluster, `arrays_${share === null ? 'free' : 'shared'}`)
  const first = await startSubject('on-postgres', null, { database })
  const second = await startSubject('joining', null, { database, beside: first })
  for (const [n, it] of shares.entries()) it.add([first, second][n]!.pid)
  const way = (name: string, subjects: readonly BenchSubject[]): ServingCase => {
    return { name: `${name}${about}`, subjects, body: ARRAY_OF_100, calls: ARRAY_CALLS }
  }
  const ways = [
    way('array, one server', [first]),
    way('array, two servers', [first, second]),
  ] as const
  try {
    return await measureWays(cluster, ways, rounds)
  } finally {
    for (const it of shares) it.end()
  }
}

async function measureWays(
  cluster: Cluster,
  ways: readonly [ServingCase, ServingCase],
  rounds: number,
): Promise<readonly [Served, Served]> {
  const results: [Served[], Served[]] = [[], []]
  try {
    for (const it of ways) await measureOnce(cluster, it, FIRST_WARMUP_MS)
    for (let round = 0; round < rounds; round++) {
      for (const [n, it] of ways.entries()) {
        results[n]!.push(await measureOnce(cluster, it, TIMES.warmupMs))
      }
    }
  } finally {
    for (const it of new Set(ways.flatMap((way) => way.subjects))) await it.stop()
  }
  return [medians(results[0]), medians(results[1])]
}

async function measureOnce(cluster: Cluster, way: ServingCase, warmupMs: number): Promise<Served> {
  const { name, subjects, body, calls } = way
  const options = { ...TIMES, warmupMs, status: 200, sleeps: true } as const
  // Read where the measured time begins, and where it ends.
  const databaseUs: number[] = []
  const all = await Promise.all(
    subjects.map((subject, n) => {
      const request = tokenizeBytes(subject, body)
      return load({
        ...options,
        port: subject.port,
        connections: calls / subjects.length,
        request: () => request,
        cpuUs: () => {
          if (n === 0) databaseUs.push(clusterCpuUs(cluster))
          return subject.cpuUs()
        },
      })
    }),
  )
  if (all.some((it) => it.failures > 0)) throw new Error(`${name}: requests failed`)
  const requests = sum(all.map((it) => it.requests))
  return {
    name,
    perSecond: requests / all[0]!.seconds,
    serverUs: sum(all.map((it) => it.cpuUs)) / requests,
    databaseUs: (databaseUs[1]! - databaseUs[0]!) / requests,
    p50Us: Math.max(...all.map((it) => it.p50Us)),
    p99Us: Math.max(...all.map((it) => it.p99Us)),
  }
}

function medians(all: readonly Served[]): Served {
  const of = (number: (it: Served) => number): number => median(all.map(number))
  return {
    name: all[0]!.name,
    perSecond: of((it) => it.perSecond),
    serverUs: of((it) => it.serverUs),
    databaseUs: of((it) => it.databaseUs),
    p50Us: of((it) => it.p50Us),
    p99Us: of((it) => it.p99Us),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, it) => total + it, 0)
}

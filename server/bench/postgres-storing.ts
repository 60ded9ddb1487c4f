/** Measures the gain from batching in the PostgreSQL adapter, against the same statements with one request each. */
import pg from 'pg'
import { connectionSettings } from '../src/adapters/storage/postgres/connection-settings.ts'
import { bounded } from '../src/adapters/storage/postgres/connection.ts'
import { PostgresStore } from '../src/adapters/storage/postgres/store.ts'
import { tokenOf, type PostgresRow } from '../src/adapters/storage/postgres/rows.ts'
import { CONTENT, contentOf } from '../src/adapters/storage/postgres/token-content.ts'
import { VISIBLE } from '../src/adapters/storage/postgres/visibility.ts'
import { SystemRandom } from '../src/adapters/system/system-random.ts'
import { idOf } from '../src/base/id.ts'
import type { StoredToken } from '../src/ports/stored.ts'
import type { Cluster } from '../test/kit/postgres/cluster.ts'
import { LatencyHistogram } from './load.ts'
import { newDatabase } from './postgres-database.ts'
import { median } from './table.ts'

const CLIENTS = 32
/** Connections of those who do not gather; the adapter reads with as many. */
const CONNECTIONS = 8
const TIMES = { warmupMs: 300, measureMs: 1500 }
const FIRST_WARMUP_MS = 2000
/** Tokens to be read, made before. */
const READ = 5000

/** Medians; microseconds. */
export interface StoringFigures {
  readonly name: string
  readonly perSecond: number
  readonly p50Us: number
  readonly p99Us: number
}

export interface Storing {
  readonly insertedAlone: StoringFigures
  readonly insertedTogether: StoringFigures
  readonly readAlone: StoringFigures
  readonly readTogether: StoringFigures
}

const COLUMNS = ['tenant', 'serial', 'type', ...Object.keys(CONTENT), 'created_by', 'created_at']

/** One row in a transaction of its own, with nothing else that the adapter does: no lock, no sums. */
const INSERT = {
  name: 'insert',
  text: `INSERT INTO tokens (${COLUMNS.join(', ')})
    VALUES (${COLUMNS.map((_, n) => `$${n + 1}`).join(', ')})`,
}

const SELECT = {
  name: 'select',
  text: `SELECT * FROM tokens WHERE tenant = $1 AND serial = $2 AND name IS NULL AND ${VISIBLE}`,
}

const random = new SystemRandom()

/** Inserts and reads the same rows both ways, by as many clients, in turns. */
export async function measureStoring(cluster: Cluster, rounds: number): Promise<Storing> {
  const url = await newDatabase(cluster, 'storing')
  const store = await PostgresStore.open({ url })
  const settings = bounded(connectionSettings(url))
  const pool = new pg.Pool({ ...settings, ...settings.servers.preferred, max: CONNECTIONS })
  const tenant = newId()
  const made = Array.from({ length: READ }, cardToken)
  await store.commit(tenant, [{ kind: 'insert-tokens', tokens: made }])
  let at = 0
  const next = (): string => made[at++ % READ]!.id
  const ways = {
    insertedAlone: way('inserted alone', async () => {
      await pool.query({ ...INSERT, values: rowOf(tenant, cardToken()) })
    }),
    insertedTogether: way('inserted together', async () => {
      const conflict = await store.commit(tenant, [
        { kind: 'insert-tokens', tokens: [cardToken()] },
      ])
      if (conflict !== null) throw new Error('A new token has met another')
    }),
    readAlone: way('read alone', async () => {
      const { rows } = await pool.query<PostgresRow>({ ...SELECT, values: [tenant, next()] })
      tokenOf(rows[0]!)
    }),
    readTogether: way('read together', async () => {
      const [token] = await store.tokens.find(tenant, [next()])
      if (token === undefined) throw new Error('A token is gone')
    }),
  }
  try {
    for (const it of Object.values(ways)) await drive(it.call, FIRST_WARMUP_MS)
    for (let round = 0; round < rounds; round++) {
      for (const it of Object.values(ways)) {
        await drive(it.call, TIMES.warmupMs)
        it.results.push({ name: it.name, ...(await drive(it.call, TIMES.measureMs)) })
      }
    }
  } finally {
    await store.close()
    await pool.end()
  }
  return {
    insertedAlone: medians(ways.insertedAlone.results),
    insertedTogether: medians(ways.insertedTogether.results),
    readAlone: medians(ways.readAlone.results),
    readTogether: medians(ways.readTogether.results),
  }
}

function way(name: string, call: () => Promise<void>) {
  return { name, call, results: [] as StoringFigures[] }
}

/** Calls repeatedly, CLIENTS at a time. */
async function drive(call: () => Promise<void>, ms: number): Promise<Omit<StoringFigures, 'name'>> {
  const latencies = new LatencyHistogram()
  const end = performance.now() + ms
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (let now = performance.now(); now < end;) {
      await call()
      const after = performance.now()
      if (after < end) latencies.add((after - now) * 1000)
      now = after
    }
  })
  await Promise.all(clients)
  return {
    perSecond: latencies.count / (ms / 1000),
    p50Us: latencies.quantile(0.5),
    p99Us: latencies.quantile(0.99),
  }
}

/** In the order of COLUMNS. */
function rowOf(tenant: string, token: StoredToken): unknown[] {
  const { internalId, type, createdBy, createdAt } = token
  return [tenant, internalId, type, ...contentOf(token), createdBy, createdAt]
}

/** A row the size of a sealed card with a fingerprint. */
function cardToken(): StoredToken {
  const id = newId()
  return {
    id,
    internalId: id,
    type: 'card',
    containers: ['/pci/high/'],
    data: random.bytes(300),
    cvc: null,
    metadata: null,
    details: null,
    fingerprint: Buffer.from(random.bytes(32)).toString('base64url'),
    deduplicate: false,
    indexes: [],
    expiresAt: null,
    createdBy: id,
    createdAt: Date.now(),
    modifiedBy: null,
    modifiedAt: null,
    revision: 0,
    uncommitted: false,
  }
}

function newId(): string {
  return idOf(Date.now(), random.bytes(10))
}

function medians(all: readonly StoringFigures[]): StoringFigures {
  return {
    name: all[0]!.name,
    perSecond: median(all.map((it) => it.perSecond)),
    p50Us: median(all.map((it) => it.p50Us)),
    p99Us: median(all.map((it) => it.p99Us)),
  }
}

/**
 * `npm run test:switchovers --workspace server -- --switchovers 20 --kills 20 --seed 1`: lets a synchronous standby take over
 * that often, from a primary that works and from one that is killed, under the load of two servers, and exits with 1 if a
 * promise is broken.
 *
 * `--patroni` does so with the recipe of docs/operate/postgres-failover.md: it needs etcd, Patroni, HAProxy and PostgreSQL 15.
 * `--weakened standbys|asynchronous` breaks a promise on purpose: then it has to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { renderReport } from '../kit/fault-report.ts'
import type { BackAgain } from './back-watch.ts'
import { runSwitchovers, SWITCHOVER_FAULTS } from './harness.ts'
import { startLocalPair } from './local-pair.ts'
import { startPatroniPair } from './patroni-pair.ts'

const { values } = parseArgs({
  options: {
    switchovers: { type: 'string', default: '20' },
    kills: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    clients: { type: 'string', default: '8' },
    weakened: { type: 'string' },
    patroni: { type: 'boolean', default: false },
  },
})
const { weakened = null } = values
if (weakened !== null && !['standbys', 'asynchronous'].includes(weakened)) {
  throw new Error('--weakened is one of standbys, asynchronous')
}
if (weakened === 'asynchronous' && values.patroni) throw new Error('Patroni sees to that')
const MEASURED = ['writesMs', 'readyMs', 'writesSinceReachableMs'] as const
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-switchovers-'))
const seed = Number(values.seed)
out(`seed ${seed}`)
const pair = values.patroni
  ? await startPatroniPair()
  : await startLocalPair({ synchronous: weakened !== 'asynchronous' })
try {
  const result = await runSwitchovers({
    folder,
    pair,
    switchovers: Number(values.switchovers),
    kills: Number(values.kills),
    seed,
    callers: { writers: Number(values.clients), readers: 4, restMsMax: 60 },
    tokensMax: Infinity,
    acceptsStandbys: weakened === 'standbys',
    stopAtFault: false,
    onEvent: ({ back, switchovers, kills }) => {
      out(`${switchovers} switchovers, ${kills} kills: ${JSON.stringify(back.at(-1))}`)
    },
  })
  const { faults: _, stories, back, ...counts } = result
  const all = { seed, weakened, ...counts, ...summaries(back) }
  for (const it of renderReport(all, SWITCHOVER_FAULTS, result)) out(it)
  if (stories.length === 0) rmSync(folder, { recursive: true })
  else {
    out(`The ledger and the log of the service are kept in ${folder}`)
    process.exitCode = 1
  }
} finally {
  await pair.stop()
}

/** Returns the median and the maximum of each time, by what came before it. */
function summaries(times: readonly BackAgain[]): Record<string, object> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(times, (it) => it.how)).map(([how, all = []]) => {
      const figures = MEASURED.map((name) => {
        const sorted = all.map((it) => it[name]).toSorted((a, b) => a - b)
        return [name, [sorted[sorted.length >> 1]!, sorted.at(-1)!]]
      })
      return [`after ${how}`, { events: all.length, ...Object.fromEntries(figures) }]
    }),
  )
}

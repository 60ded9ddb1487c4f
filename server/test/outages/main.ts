/**
 * `npm run test:outages --workspace server -- --postmaster 200 --backends 1000 --seed 1`: brings a PostgreSQL server down
 * that often under load, ends as many backends, and exits with 1 if a promise is broken.
 *
 * The server flushes to the disk as in production. That is not what is tested: the system keeps what a process wrote, and
 * it is processes that are killed. `--weakened early|torn|forgetful|partial|leaky` breaks a promise on purpose: then it has
 * to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { WEAKNESSES } from '../../crash/weak-store.ts'
import { renderReport } from '../kit/fault-report.ts'
import { startCluster } from '../kit/postgres/cluster.ts'
import { OUTAGE_FAULTS, runOutages } from './harness.ts'

const { values } = parseArgs({
  options: {
    postmaster: { type: 'string', default: '200' },
    backends: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    clients: { type: 'string', default: '8' },
    'all-every': { type: 'string', default: '100' },
    weakened: { type: 'string' },
  },
})
const weakness = WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-outages-'))
const cluster = await startCluster({ durable: true })
const seed = Number(values.seed)
try {
  const result = await runOutages({
    folder,
    cluster,
    downfalls: Number(values.postmaster),
    backends: Number(values.backends),
    seed,
    clients: Number(values.clients),
    allEvery: Number(values['all-every']),
    answerMsMax: 2_000,
    backMsMax: 5_000,
    weakness,
    stopAtFault: false,
    onRound: (round, { backends, longestMs }) => {
      if (round % 20 === 0) out(`${round} downfalls, ${backends} backends, at most ${longestMs} ms`)
    },
  })
  const { faults: _, stories, backMs, ...counts } = result
  const sorted = backMs.toSorted((a, b) => a - b)
  const back = { backMsMedian: sorted[sorted.length >> 1], backMsMax: sorted.at(-1) }
  for (const it of renderReport({ seed, weakness, ...counts, ...back }, OUTAGE_FAULTS, result)) {
    out(it)
  }
  if (stories.length === 0) rmSync(folder, { recursive: true })
  else {
    out(`The ledger and the log of the service are kept in ${folder}`)
    process.exitCode = 1
  }
} finally {
  await cluster.stop()
}

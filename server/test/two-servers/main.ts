/**
 * `npm run test:two-servers --workspace server -- --kills 200 --seed 1`: kills one of two servers on one PostgreSQL database
 * that often while they run jobs, and exits with 1 if a promise is broken.
 *
 * `--weakened rerun|forgetful` breaks a promise on purpose: then it has to exit with 1. `--minutes 10` ends the kills then,
 * if there were not as many. `--impatient` does not wait at the end until the claims of those that were killed are over.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { JOB_WEAKNESSES } from '../jobs/harness.ts'
import { JOB_FAULTS } from '../jobs/judge.ts'
import { renderReport } from '../kit/fault-report.ts'
import { startCluster } from '../kit/postgres/cluster.ts'
import { runTwoServers } from './harness.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    minutes: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    weakened: { type: 'string' },
    impatient: { type: 'boolean', default: false },
  },
})
const weakness = JOB_WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${JOB_WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-two-servers-'))
const cluster = await startCluster()
const seed = Number(values.seed)
try {
  const result = await runTwoServers({
    folder,
    database: cluster.url,
    kills: Number(values.kills),
    lifeJobsMax: Infinity,
    minutes: Number(values.minutes),
    seed,
    weakness,
    patient: !values.impatient,
    onKill: (kill, accepted) => {
      if (kill % 20 === 0) out(`${kill} kills, ${accepted} jobs accepted`)
    },
  })
  const { faults: _, stories, ...counts } = result
  for (const it of renderReport({ seed, weakness, ...counts }, JOB_FAULTS, result)) out(it)
  if (stories.length > 0) process.exitCode = 1
} finally {
  await cluster.stop()
  rmSync(folder, { recursive: true })
}

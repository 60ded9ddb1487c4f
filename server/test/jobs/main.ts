/**
 * `npm run test:jobs --workspace server -- --kills 1000 --seed 1`: kills the program that often while it runs jobs, and
 * exits with 1 if a promise is broken.
 *
 * `--weakened rerun|forgetful` breaks a promise on purpose: then it has to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { renderReport } from '../kit/fault-report.ts'
import { JOB_WEAKNESSES, runJobs } from './harness.ts'
import { JOB_FAULTS } from './judge.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    weakened: { type: 'string' },
  },
})
const weakness = JOB_WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${JOB_WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-jobs-'))
const seed = Number(values.seed)

const result = await runJobs({
  folder,
  kills: Number(values.kills),
  lifeJobsMax: 60,
  seed,
  weakness,
  onKill: (kill, accepted) => {
    if (kill % 50 === 0) out(`${kill} kills, ${accepted} jobs accepted`)
  },
})
const { faults: _, stories, ...counts } = result
for (const it of renderReport({ seed, weakness, ...counts }, JOB_FAULTS, result)) out(it)
if (stories.length === 0) rmSync(folder, { recursive: true })
else {
  out(`The vault is kept in ${folder}`)
  process.exitCode = 1
}

/**
 * `npm run test:cuts --workspace server -- --cuts 2000 --seed 1`: cuts the connection to a PostgreSQL server that often, at
 * every byte of a commit and of its answer, and exits with 1 if a promise is broken.
 *
 * `--weakened early|torn|forgetful` breaks a promise on purpose: then it has to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { WEAKNESSES } from '../../crash/weak-store.ts'
import { renderReport } from '../kit/fault-report.ts'
import { startCluster } from '../kit/postgres/cluster.ts'
import { runCuts } from './harness.ts'
import { CUT_FAULTS } from './judge.ts'

const { values } = parseArgs({
  options: {
    cuts: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    weakened: { type: 'string' },
  },
})
const weakness = WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-cuts-'))
const cluster = await startCluster()
const seed = Number(values.seed)
try {
  const result = await runCuts({
    folder,
    database: cluster.url,
    cuts: Number(values.cuts),
    seed,
    answerMsMax: 2_000,
    weakness,
    stopAtFault: false,
    onCut: (cut) => {
      if (cut % 500 === 0) out(`${cut} cuts`)
    },
  })
  const { faults: _, stories, ...counts } = result
  for (const it of renderReport({ seed, weakness, ...counts }, CUT_FAULTS, result)) out(it)
  if (stories.length === 0) rmSync(folder, { recursive: true })
  else {
    out(`The log of the service is kept in ${folder}`)
    process.exitCode = 1
  }
} finally {
  await cluster.stop()
}

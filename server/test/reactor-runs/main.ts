/**
 * `npm run test:reactor-runs --workspace server -- --runs 1000`: runs that many reactors that leave something behind, at each
 * level that this machine supports, and checks the runs that follow. Throws if one gets anything but its own result.
 */
import { parseArgs } from 'node:util'
import { REACTOR_LEVELS } from '../../src/ports/reactor-runner.ts'
import { noBubblewrap } from '../kit/bubblewrap.ts'
import { jailOf } from './jail.ts'
import { reactorRuns } from './run.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const seed = Number(values.seed)
const levels = REACTOR_LEVELS.filter((it) => it !== 'hardened' || noBubblewrap() === false)
const count = Math.ceil(Number(values.runs) / levels.length)
for (const level of levels) {
  const { make, close } = await jailOf(level)
  try {
    const tally = await reactorRuns(make, {
      count,
      seed,
      gapsMs: [0, 0, 50],
      togetherMax: 3,
      reactors: 2,
      patient: true,
    })
    process.stdout.write(`${level}, seed ${seed}: ${JSON.stringify(tally)}\n`)
  } finally {
    await close()
  }
}

/**
 * `npm run test:crash --workspace server -- --kills 1000`: kills a server that often, and exits with 1
 * if a promise is broken.
 *
 * `--weakened early|torn|forgetful|partial|leaky` breaks a promise on purpose: then it has to exit with 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { run } from './harness.ts'
import { renderProgress, renderResult } from './report.ts'
import { WEAKNESSES } from './weak-store.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    clients: { type: 'string', default: '16' },
    'all-every': { type: 'string', default: '200' },
    weakened: { type: 'string' },
  },
})
const weakness = WEAKNESSES.find((it) => it === values.weakened) ?? null
if (weakness === null && values.weakened !== undefined) {
  throw new Error(`--weakened is one of ${WEAKNESSES.join(', ')}`)
}
const out = (text: string): void => void process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'symbolon-crash-'))
const seed = Number(values.seed)

const result = await run({
  folder,
  kills: Number(values.kills),
  seed,
  clients: Number(values.clients),
  passMsMax: 4_000,
  allEvery: Number(values['all-every']),
  weakness,
  stopAtFault: false,
  onKill: (kill, tally) => {
    if (kill % 50 === 0) out(renderProgress(kill, tally))
  },
})
for (const line of renderResult({ seed, weakness }, result)) out(line)
if (result.stories.length === 0) rmSync(folder, { recursive: true })
else {
  out(`The vault and its ledger are kept in ${folder}`)
  process.exitCode = 1
}

/**
 * `npm run test:migrate --workspace server -- --tokens 1000000 --interruptions 10`: moves so many tokens to PostgreSQL,
 * kills the command so often meanwhile, and compares everything. Throws when something is different.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startCluster } from '../kit/postgres/cluster.ts'
import { moveInterrupted } from './run.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000' },
    interruptions: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [tokens, interruptions] = [Number(values.tokens), Number(values.interruptions)]
const seed = Number(values.seed)
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-migrate-'))
const report = (line: string): void => void process.stdout.write(`${line}\n`)
const cluster = await startCluster({ durable: true })
try {
  const database = cluster.url
  const tally = await moveInterrupted({ folder, database, tokens, interruptions, seed, report })
  report(`${tokens} tokens, seed ${seed}: ${JSON.stringify(tally)}`)
} finally {
  await cluster.stop()
  rmSync(folder, { recursive: true })
}

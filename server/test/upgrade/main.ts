/**
 * `npm run test:upgrade --workspace server -- --before DIR`: makes vaults on SQLite and PostgreSQL with the version in DIR, a checkout with
 * its packages installed, and opens them with this one: everything must verify, answer as before, and rotate. Throws at the first
 * difference.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startCluster } from '../kit/postgres/cluster.ts'
import { upgradeFrom } from './run.ts'

const { values } = parseArgs({
  options: { before: { type: 'string' }, tokens: { type: 'string', default: '2000' } },
})
const { before, tokens } = values
if (before === undefined) throw new Error('--before is the checkout of the version before')
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-upgrade-'))
const cluster = await startCluster({ durable: true })
try {
  for (const database of ['sqlite', 'postgres'] as const) {
    const url = database === 'postgres' ? cluster.url : null
    const run = { before: path.resolve(before), folder: path.join(folder, database), url }
    const tally = await upgradeFrom({ ...run, tokens: Number(tokens) })
    process.stdout.write(`${database}: ${JSON.stringify(tally)}\n`)
  }
} finally {
  await cluster.stop()
  rmSync(folder, { recursive: true })
}

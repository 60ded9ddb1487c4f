/**
 * `npm run test:rotation --workspace server -- --tokens 1000000 --kills 20`: rotates the data key over so many
 * tokens, under load, and kills the server so often meanwhile. Throws at the first read that fails.
 *
 * With `--servers 2` there are so many on one PostgreSQL database, and each kill is of one of them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startCluster } from '../kit/postgres/cluster.ts'
import { rotateUnderLoad } from './run.ts'

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000' },
    kills: { type: 'string', default: '5' },
    callers: { type: 'string', default: '8' },
    servers: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [tokens, kills] = [Number(values.tokens), Number(values.kills)]
const [callers, seed] = [Number(values.callers), Number(values.seed)]
const servers = Number(values.servers)
const cluster = servers > 1 ? await startCluster() : null
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-rotation-'))
const out = (line: string): void => void process.stdout.write(`${line}\n`)
try {
  const began = performance.now()
  const database = cluster?.url ?? null
  const about = { folder, database, servers, tokens, kills, callers, pauseMs: 0, seed }
  const timing = { retirementMs: 3_000, calmMs: 10_000 }
  const tally = await rotateUnderLoad({ ...about, ...timing, report: out })
  const { calm, busy, ...counted } = tally
  const seconds = Math.round((performance.now() - began) / 1000)
  out(`${tokens} tokens, seed ${seed}, ${seconds} s: ${JSON.stringify(counted)}`)
  out('0 failed reads, 0 rows left')
  out(`reads, p99: ${p99(calm)} ms before, ${p99(busy)} ms while it rotates`)
} finally {
  await cluster?.stop()
  rmSync(folder, { recursive: true })
}

function p99(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * 0.99)] ?? NaN).toFixed(1)
}

/**
 * `npm run test:races --workspace server -- --races 100000`: races the ends of that many transactions, on the
 * store in a file. Throws when one ends in two ways.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { SqliteStore } from '../../src/adapters/storage/sqlite/store.ts'
import { races } from './run.ts'

const { values } = parseArgs({
  options: {
    races: { type: 'string', default: '10000' },
    'at-once': { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [count, concurrency, seed] = [
  Number(values.races),
  Number(values['at-once']),
  Number(values.seed),
]
const folder = mkdtempSync(path.join(tmpdir(), 'symbolon-races-'))
const store = await SqliteStore.open({ folder })
try {
  const tally = await races(store, { count, concurrency, seed })
  process.stdout.write(`${count} races, seed ${seed}: ${JSON.stringify(tally)}\n`)
} finally {
  await store.close()
  rmSync(folder, { recursive: true })
}

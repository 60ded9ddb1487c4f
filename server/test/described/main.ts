/**
 * `npm run test:described --workspace server -- --count 20000 --seed 1 --store sqlite`: sends that many requests, generated from
 * the interface document, to a vault on `sqlite` or `postgres`. Exits with 1 at a response that the document does not describe,
 * and at any 5xx of the service. With `--weakened` the document lacks a member of a token, which must be found.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sendDescribed } from './run.ts'
import { WEAKENINGS } from './weakened.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string', default: 'sqlite' },
    weakened: { type: 'boolean', default: false },
  },
})
const { store, weakened } = values
const [count, seed] = [Number(values.count), Number(values.seed)]
assert.ok(store === 'sqlite' || store === 'postgres', '--store is sqlite or postgres')
const begun = performance.now()
const describe = WEAKENINGS['member']!
const tally = await sendDescribed({ count, seed, store, ...(weakened && { describe }) })
const seconds = ((performance.now() - begun) / 1000).toFixed(0)
process.stdout.write(`${JSON.stringify(tally, null, 2)}\n`)
process.stdout.write(
  `${store}: ${count} requests, seed ${seed}, ${seconds} s: each was described\n`,
)
if (count >= 20_000) assert.deepEqual(tally.unsuccessful, [], 'These operations never succeeded')

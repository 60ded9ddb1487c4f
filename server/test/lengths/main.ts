/**
 * `npm run test:lengths --workspace server -- --count 1000`: names tokens of random length in every operation, by callers
 * that may not see their data. Exits with 1 if a response differs from the one about a token of one byte.
 */
import { parseArgs } from 'node:util'
import { checkLengths } from './run.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [count, seed] = [Number(values.count), Number(values.seed)]
const { tokens, operations, requests, differences } = await checkLengths({ count, seed })
for (const it of differences.slice(0, 50)) process.stdout.write(`${it}\n`)
process.stdout.write(
  `${tokens} tokens, ${operations} operations, ${requests} responses, seed ${seed}: ${differences.length} differences\n`,
)
process.exitCode = differences.length === 0 ? 0 : 1

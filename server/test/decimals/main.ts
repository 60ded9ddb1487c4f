/**
 * `npm run test:decimals --workspace server -- --count 100000`: computes random chains of math filters and compares them
 * with exact fractions. Throws with a seed and a path to replay a difference.
 */
import { parseArgs } from 'node:util'
import { checkDecimals } from './run.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [count, seed] = [Number(values.count), Number(values.seed)]
const { filters, refused } = checkDecimals({ count, seed })
process.stdout.write(
  `${count} computations of ${filters} filters, seed ${seed}: 0 differences, ${refused} refused as expected\n`,
)

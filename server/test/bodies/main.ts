/**
 * `npm run test:bodies --workspace server -- --bodies 100000`: reads and renders random bodies and compares them
 * with the expected output. Throws with a seed and a path to replay a failure.
 */
import { parseArgs } from 'node:util'
import { checkBodies } from './run.ts'

const { values } = parseArgs({
  options: {
    bodies: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [bodies, seed] = [Number(values.bodies), Number(values.seed)]
checkBodies({ bodies, seed })
process.stdout.write(`${bodies} bodies, seed ${seed}: each arrived as it had to\n`)

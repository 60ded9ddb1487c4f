/**
 * `npm run test:bodies --workspace server -- --bodies 100000`: reads and renders bodies by chance and holds them
 * to what has to arrive. Throws with a seed and a path to play a failure again.
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

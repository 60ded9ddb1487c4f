/** fast-check with the seed of the run. A property that fails prints its seed and the path to its counterexample. */
import fc from 'fast-check'
import { SEED } from './seed.ts'

fc.configureGlobal({ seed: SEED })

export { fc }

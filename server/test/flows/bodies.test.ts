/** Some bodies by chance, with every test run; `npm run test:bodies` has as many as one likes. */
import { test } from 'node:test'
import { checkBodies } from '../bodies/run.ts'

/** Other ones every day. */
const SEED = Math.floor(Date.now() / 86_400_000)

test('a proxied body arrives with its expressions replaced, and otherwise as it was sent', () => {
  checkBodies({ bodies: 2_000, seed: SEED })
})

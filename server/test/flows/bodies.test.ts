/** Some random bodies; `npm run test:bodies` checks 100,000. */
import { test } from 'node:test'
import { checkBodies } from '../bodies/run.ts'
import { SEED } from '../kit/seed.ts'

test('a proxied body arrives with its expressions replaced, and otherwise as it was sent', () => {
  checkBodies({ bodies: 2_000, seed: SEED })
})

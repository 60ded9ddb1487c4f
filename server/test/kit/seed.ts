/**
 * The seed of every random test.
 *
 * It is fixed, so that the suite cannot fail by chance on one day and pass on the next. `SYMBOLON_TEST_SEED=7` sets
 * another; `npm run test:seeds` runs every test that imports this file under many.
 */
export const SEED: number = seedOf(process.env['SYMBOLON_TEST_SEED'] ?? '1')

function seedOf(given: string): number {
  const seed = Number(given)
  if (/^\d{1,10}$/.test(given) && seed < 2 ** 31) return seed
  throw new Error(`SYMBOLON_TEST_SEED must be an integer from 0 to ${2 ** 31 - 1}, not "${given}"`)
}

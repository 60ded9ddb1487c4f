/**
 * fast-check with the seed of the run; `import * as fc` as from the package. A failing property prints its seed and the
 * path to its counterexample.
 */
import * as fc from 'fast-check'
import { SEED, SEEDS } from './seed.ts'

export * from 'fast-check'

// For functions that draw outside of assert(), such as sample().
fc.configureGlobal({ seed: SEED })

/** Like fast-check's assert(), but for every seed of the run, unless `parameters` has one. */
export function assert<Values>(
  property: fc.IAsyncProperty<Values>,
  parameters?: fc.Parameters<Values>,
): Promise<void>
export function assert<Values>(
  property: fc.IProperty<Values>,
  parameters?: fc.Parameters<Values>,
): void
export function assert<Values>(
  property: fc.IRawProperty<Values>,
  parameters: fc.Parameters<Values> = {},
): void | Promise<void> {
  const seeds = parameters.seed === undefined ? SEEDS : [parameters.seed]
  if (property.isAsync())
    return assertInTurn(property as fc.IAsyncProperty<Values>, parameters, seeds)
  for (const seed of seeds) fc.assert(property as fc.IProperty<Values>, { ...parameters, seed })
}

async function assertInTurn<Values>(
  property: fc.IAsyncProperty<Values>,
  parameters: fc.Parameters<Values>,
  seeds: readonly number[],
): Promise<void> {
  for (const seed of seeds) await fc.assert(property, { ...parameters, seed })
}

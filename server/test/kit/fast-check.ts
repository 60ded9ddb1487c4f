/**
 * fast-check with the seed of the run; `import * as fc` as from the package. A failing property prints its seed and the
 * path to its counterexample.
 */
import * as fc from 'fast-check'
import { SEED, SEEDS } from './seed.ts'

export * from 'fast-check'

// For functions that draw outside of assert(), such as sample().
fc.configureGlobal({ seed: SEED })

const [SURROGATES_FROM, SURROGATES] = [0xd800, 0x800]

/** Any code point but surrogates. */
const codePoint = fc.nat(0x10ffff - SURROGATES).map(
  (it) => String.fromCodePoint(it < SURROGATES_FROM ? it : it + SURROGATES),
  (character) => {
    const point = String(character).codePointAt(0) ?? 0
    return point < SURROGATES_FROM ? point : point - SURROGATES
  },
)

/**
 * Like fast-check's string(), whose unit `binary` fills a map of all code points on first use. That takes longer than
 * most properties.
 */
export function string(constraints: fc.StringConstraints = {}): fc.Arbitrary<string> {
  return fc.string(
    constraints.unit === 'binary' ? { ...constraints, unit: codePoint } : constraints,
  )
}

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

import * as fc from '../kit/fast-check.ts'
import { agree, anyCommands } from './commands.ts'
import { Model } from './model.ts'
import type { StoreName } from '../kit/test-store.ts'
import { realVault } from './real.ts'

/** Runs so many sequences of commands on a vault and on the model; throws where they differ. */
export async function holdToModel(
  store: StoreName,
  { sequences, seed }: { readonly sequences: number; readonly seed: number },
): Promise<void> {
  const vault = await realVault(store)
  try {
    const property = fc.asyncProperty(anyCommands, async (commands) => {
      const real = await vault.newTenant()
      const model = new Model(real.now())
      await fc.asyncModelRun(() => ({ model, real }), commands)
      model.now = real.now()
      await agree(model, real)
    })
    await fc.assert(property, { numRuns: sequences, seed, endOnFailure: false })
  } finally {
    await vault.close()
  }
}

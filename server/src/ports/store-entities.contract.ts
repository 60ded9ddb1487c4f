import { describe, test } from 'node:test'
import { holdEntitiesToModel } from '../../test/model/entity-run.ts'
import type { ReadableStore } from '../../test/model/entity-stores.ts'

/** The contract of the rows of described entities, in `sequences` random sequences of commits. */
export function entityContract(
  name: string,
  open: () => Promise<ReadableStore>,
  sequences: number,
): void {
  describe(`Store contract: ${name}: described entities`, () => {
    test('rows, conflicts, ciphertexts and cleared tenants are what a model of maps says', async (t) => {
      const opened = await open()
      t.after(() => opened.close())
      await holdEntitiesToModel(opened, { sequences })
    })
  })
}

/** A few requests made from the interface document; `npm run test:described -- --count 20000` is the long run. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sendDescribed } from '../described/run.ts'
import { WEAKENINGS } from '../described/weakened.ts'
import { SEED } from '../kit/seed.ts'
import type { StillWorld } from '../kit/still-world.ts'

const COUNT = 400

test('every response to a request made from the document, or nearly, is described there', async () => {
  const { successful } = await sendDescribed({ count: COUNT, seed: SEED })
  assert.ok(successful > COUNT / 4, `only ${successful} succeeded`)
})

describe('a response is found not to be described', () => {
  for (const [what, weakening] of Object.entries(WEAKENINGS)) {
    test(`by its ${what}`, async () => {
      await assert.rejects(sendDescribed({ count: COUNT, seed: SEED, describe: weakening }), {
        name: 'UndescribedResponse',
      })
    })
  }

  test('when the service fails', async () => {
    const change = (world: StillWorld) => {
      const tokens = Object.create(world.store.tokens) as typeof world.store.tokens
      const store = Object.create(world.store, { tokens: { value: tokens } }) as typeof world.store
      tokens.lookUp = () => Promise.reject(new Error('It fails'))
      return { ...world, store }
    }
    await assert.rejects(sendDescribed({ count: COUNT, seed: SEED, change }), /failed with 500/)
  })
})

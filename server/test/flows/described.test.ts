/** A few requests made from the interface document; `npm run test:described -- --count 20000` is the long run. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isProxy, operationsOf, type ApiDocument } from '../described/document.ts'
import { ResponseCheck } from '../described/response-check.ts'
import { sendDescribed } from '../described/run.ts'
import { WEAKENINGS } from '../described/weakened.ts'
import { wireClient } from '../described/wire-client.ts'
import { SEED } from '../kit/seed.ts'
import { stillVault } from '../kit/still-vault.ts'
import type { StillWorld } from '../kit/still-world.ts'

const COUNT = 400

test('every response to a request made from the document, or nearly, is described there', async () => {
  const { successful } = await sendDescribed({ count: COUNT, seed: SEED })
  assert.ok(successful > COUNT / 4, `only ${successful} succeeded`)
})

test('an id that cannot be decoded, or is too long, gets a 404 as described', async (t) => {
  const vault = await stillVault({})
  t.after(() => vault.close())
  const client = await wireClient(vault)
  t.after(() => client.close())
  const document = (await vault.call('GET', '/openapi.json')).json() as unknown as ApiDocument
  const check = new ResponseCheck(document)
  const operations = operationsOf(document).filter(
    (it) => it.path.includes('{') && !isProxy(it.path),
  )
  assert.ok(operations.length > 0)
  for (const { method, path } of operations) {
    for (const id of ['%', 'x'.repeat(5_000)]) {
      const target = path.replaceAll(/\{\w+\}/g, id)
      const request = { method, target, headers: {}, body: undefined }
      const reply = await client.send(request)
      assert.equal(check.finding(request, reply), null, `${method} ${path} at ${id.slice(0, 9)}`)
      assert.equal(reply.status, 404, `${method} ${path}`)
    }
  }
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

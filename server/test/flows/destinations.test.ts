/** Each way to misbehave, once by each carrier; `npm run test:destinations` does it ten thousand times. */
import { after, before, describe, test } from 'node:test'
import { KINDS } from '../destinations/kinds.ts'
import { CARRIERS, openDestinations, type Destinations } from '../destinations/run.ts'

describe('a destination that', { concurrency: 8 }, () => {
  let destinations: Destinations
  before(async () => {
    destinations = await openDestinations(500)
  })
  after(() => destinations.close())

  for (const carrier of ['undici', 'node'] as const satisfies (keyof typeof CARRIERS)[]) {
    for (const kind of KINDS) {
      test(`${kind.name} ends in ${kind.ends}, by ${carrier}`, async () => {
        await destinations.call(kind, carrier)
        // A faulty response must not affect the next request.
        await destinations.call(kind, carrier)
      })
    }
  }
})

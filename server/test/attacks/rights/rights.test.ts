/** The attacks of `npm run test:rights` that are quick, against this version: none succeeds. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { temporaryFolder } from '../../kit/running-vault.ts'
import { RIGHTS_ATTACKS } from './attacks.ts'
import { startAttacked } from './stage.ts'

describe('it does not succeed that', { concurrency: 4 }, () => {
  let attacked: Awaited<ReturnType<typeof startAttacked>>
  before(async () => {
    attacked = await startAttacked(temporaryFolder({ after }))
  })
  after(() => attacked.stop())

  for (const { name, slow, succeeds } of RIGHTS_ATTACKS) {
    if (slow === true) continue
    test(name, async () => assert.equal(await succeeds(attacked.on), false))
  }
})

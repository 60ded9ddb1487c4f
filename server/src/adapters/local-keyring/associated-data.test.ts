import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import type { SealContext } from '../../ports/keyring.ts'
import { frame } from './frame.ts'
import { AssociatedData } from './associated-data.ts'

test('of() is the frame of everything an envelope is bound to, in whatever order contexts come', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.nat(),
      fc.array(context, { maxLength: 60 }),
      (tenant, version, contexts) => {
        const associatedData = new AssociatedData(tenant, version)
        for (const it of contexts) {
          assert.deepEqual(
            Buffer.from(associatedData.of(it)),
            frame([
              'symbolon envelope',
              '1',
              tenant,
              it.id,
              it.part,
              it.type,
              String(version),
              ...it.containers,
            ]),
          )
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('of() does not mind when the list of containers it was given changes later', () => {
  const associatedData = new AssociatedData('tenant-a', 1)
  const containers = ['/a/']
  const it: SealContext = {
    id: '018f0000-0000-4000-8000-000000000001',
    part: 'data',
    type: 't',
    containers,
  }
  associatedData.of(it)
  containers[0] = '/b/'
  assert.deepEqual(
    Buffer.from(associatedData.of(it)),
    Buffer.from(new AssociatedData('tenant-a', 1).of({ ...it, containers: ['/b/'] })),
  )
})

/** More kinds than the cache holds, so that some return after they were evicted. */
const context: fc.Arbitrary<SealContext> = fc.record(
  {
    id: fc.oneof(fc.uuid(), fc.constantFrom('alias', 'ß'.repeat(36), 'x'.repeat(36))),
    part: fc.constantFrom('data', 'cvc'),
    type: fc.constantFrom('card', 'token', 'bank', ''),
    containers: fc.array(fc.constantFrom('/pci/', '/general/', ''), { maxLength: 2 }),
  },
  { noNullPrototype: true },
)

import { SystemRandom } from '../../src/adapters/system/system-random.ts'

const made: Promise<Uint8Array>[] = []

/** Two keys in turn, which all tests of a file sign with: to make one takes longer than most of them. */
export function testSigningKeys(): () => Promise<Uint8Array> {
  let count = 0
  return () => (made[count++ % 2] ??= new SystemRandom().signingKey('test'))
}

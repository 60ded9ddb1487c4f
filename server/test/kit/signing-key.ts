import { SystemRandom } from '../../src/adapters/system/system-random.ts'

const made: Promise<Uint8Array>[] = []

/** Returns two keys alternately, shared by all tests of a file: generating one takes longer than most of them. */
export function testSigningKeys(): () => Promise<Uint8Array> {
  let count = 0
  return () => (made[count++ % 2] ??= new SystemRandom().signingKey('test'))
}

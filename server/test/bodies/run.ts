import assert from 'node:assert/strict'
import * as fc from '../kit/fast-check.ts'
import { ExpressionWatch } from '../../src/proxy/bodies/expression-watch.ts'
import { runToCompletion, findBodyExpressions } from '../../src/proxy/bodies/body-expressions.ts'
import { anyBody, TOKENS, type AnyBody } from './pieces.ts'

/** Reads and renders so many bodies; throws where one does not arrive as it has to, byte for byte. */
export function checkBodies({
  bodies,
  seed,
}: {
  readonly bodies: number
  readonly seed: number
}): void {
  const lengths = fc.infiniteStream(fc.integer({ min: 1, max: 40 }))
  const property = fc.property(anyBody(), lengths, (body, lengths) => {
    if (body.refused === true) {
      assert.throws(() => findBodyExpressions(body.sent, body.type), { code: 'body_invalid' })
      assert.ok(watched(body, lengths), 'an expression came by unseen')
      return
    }
    const read = findBodyExpressions(body.sent, body.type)
    assert.equal(read.references.length, body.count)
    const rendered = runToCompletion(read.render({ random: NO_CHANCE }, ({ id }) => TOKENS[id]!))
    if (!rendered.equals(body.arrives)) {
      assert.equal(rendered.toString('latin1'), body.arrives.toString('latin1'))
    }
    if (body.count === 0) assert.equal(rendered, body.sent)
    else assert.ok(watched(body, lengths), 'an expression came by unseen')
  })
  fc.assert(property, { numRuns: bodies, seed })
}

const NO_CHANCE = {
  bytes: (): Uint8Array => assert.fail('no filter here draws by chance'),
}

/** Whether a watch sees the body come by, cut into chunks. */
function watched({ sent, type }: AnyBody, lengths: Iterator<number>): boolean {
  const watch = new ExpressionWatch(type)
  let seen = false
  for (let at = 0; at < sent.length;) {
    const length = lengths.next().value as number
    seen = watch.see(sent.subarray(at, at + length))
    at += length
  }
  return seen
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wayOf } from './way-of.ts'

test('wayOf() takes undici but for what undici does not send', () => {
  const ways: [headers: string[], way: string][] = [
    [[], 'undici'],
    [['X-Any', 'keep-alive', 'content-type', 'a/b'], 'undici'],
    [['Connection', 'close'], 'undici'],
    [['CONNECTION', 'Keep-Alive'], 'undici'],
    [['Connection', 'keep-alive, X-Odd'], 'node'],
    [['X-Any', 'a', 'KEEP-alive', 'timeout=5'], 'node'],
  ]
  for (const [headers, way] of ways) assert.equal(wayOf(headers).client, way, headers.join())
})

test('wayOf() sees that a connection is to close, in any list', () => {
  for (const it of ['close', 'Close', 'keep-alive, close', 'close,x', 'x ,\tclose']) {
    assert.equal(wayOf(['Connection', it]).closes, true, it)
  }
  for (const it of ['keep-alive', 'x-close', 'closed', '']) {
    assert.equal(wayOf(['Connection', it]).closes, false, it)
  }
  assert.equal(wayOf(['X-Any', 'close']).closes, false)
})

test('wayOf() refuses fields that say where a request goes or ends', () => {
  for (const name of ['host', 'HOST', 'Content-Length', 'transfer-encoding', 'Upgrade', 'expect']) {
    assert.throws(() => wayOf(['X-Any', 'a', name, 'b']), /not the sender's/)
  }
})

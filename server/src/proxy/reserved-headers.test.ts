import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseProxyOptions } from './reserved-headers.ts'

describe('parseProxyOptions() accepts as BT-PROXY-KEEP-ALIVE', () => {
  for (const it of ['timeout=5', 'timeout=5, max=100', 'a', 'a="b, c" ,d=e', "!#$%&'*+.^_`|~-=1"]) {
    test(it, () => {
      assert.equal(parseProxyOptions(['BT-PROXY-KEEP-ALIVE', it], 'enterprise').keepAlive, it)
    })
  }
})

describe('parseProxyOptions() refuses as BT-PROXY-KEEP-ALIVE', () => {
  for (const it of [
    '',
    ' ',
    ',',
    'a,',
    'a=',
    '=a',
    'a b',
    'a=b c',
    'a="b',
    'a="\u0001"',
    'a="é"',
    'a;b',
  ]) {
    test(JSON.stringify(it), () => {
      const parse = () => parseProxyOptions(['bt-proxy-keep-alive', it], 'enterprise')
      assert.throws(parse, { code: 'header_invalid' })
    })
  }
})

test('parseProxyOptions() takes close and keep-alive as BT-PROXY-CONNECTION, and no name of a header', () => {
  for (const it of ['close', 'Keep-Alive', 'CLOSE']) {
    const { connection } = parseProxyOptions(['BT-PROXY-CONNECTION', it], 'enterprise')
    assert.equal(connection, it.toLowerCase())
  }
  for (const it of ['', 'upgrade', 'close, keep-alive', 'close,', 'authorization']) {
    const parse = () => parseProxyOptions(['BT-PROXY-CONNECTION', it], 'enterprise')
    assert.throws(parse, { code: 'header_invalid' })
  }
})

test('parseProxyOptions() refuses both on the standard plan before it looks at them, and nothing else', () => {
  for (const name of ['BT-PROXY-CONNECTION', 'BT-PROXY-KEEP-ALIVE']) {
    assert.throws(() => parseProxyOptions([name, '???'], 'standard'), { code: 'plan_insufficient' })
  }
  const headers = ['BT-PROXY-URL', 'a', 'BT-PROXY-KEY', 'b', 'BT-PROXY-DRY-RUN', 'true']
  const { url, key, dryRun } = parseProxyOptions(headers, 'standard')
  assert.deepEqual([url, key, dryRun], ['a', 'b', true])
})

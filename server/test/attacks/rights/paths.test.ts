/** Paths that a destination, or a server in front, may read as others than they are: overlong, full-width and nested dots. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { joinDestination, parseBase } from '../../../src/proxy/destination.ts'
import { proxyStage, type ProxyStage } from '../../kit/proxy-stage.ts'

/** Each may be read as a dot. */
const DOTS = [
  '%c0%ae',
  '%C0%AE',
  '%e0%80%ae',
  '%f0%80%80%ae',
  '%f8%80%80%80%ae',
  '%fc%80%80%80%80%ae',
  '%c0%2e',
  '%c0%6e',
  '%c0%ee',
  '%c0.',
  '%e0%40%6e',
  '%f0%40%00%ee',
  '%ff.',
  '.%80',
  '%ef%bc%8e',
  '%EF%BC%8E',
  '%f0%8f%bc%8e',
  '%e2%80%a4',
  '%ef%b9%92',
  '%u002e',
  '%uFF0E',
  '%25c0%25ae',
  '%c0%25ae',
  '%25c0%ae',
  '%2525ef%2525bc%25258e',
  '%c0%a52e',
  '%ef%bc%852e',
  '%ef%b9%aa2e',
  '%25%ff2e',
  '\u00c0\u00ae',
  '\u00ef\u00bc\u008e',
  '.%e2%80%8b',
  '.%ef%bb%bf',
  '%c2%ad.',
  '.%c2%a0',
]

/** Each may be read as two dots. */
const DOUBLE_DOTS = ['%e2%80%a5', '%ef%b8%b0', '%c0%ae.', '.%ef%bc%8e', '%25e2%2580%25a5']

/** Each may be read as a slash or a backslash. */
const SEPARATORS = [
  '%c0%af',
  '%e0%80%af',
  '%f0%80%80%af',
  '%c0%2f',
  '%c1%9c',
  '%c1%1c',
  '%e0%81%9c',
  '%ef%bc%8f',
  '%ef%bc%bc',
  '%ef%b9%a8',
  '%e2%81%84',
  '%e2%88%95',
  '%e2%88%96',
  '%c2%a5',
  '%e2%82%a9',
  '%u2215',
  '%uff0f',
  '%25uff0f',
  '%25c0%25af',
  '\u00ef\u00bc\u008f',
]

const CLIMBS: readonly string[] = [
  ...DOTS.flatMap((it) => [`/${it}${it}/a`, `/a/${it}${it}`, `/${it}/a`, `/a/.${it};x=y`]),
  ...DOUBLE_DOTS.flatMap((it) => [`/${it}/a`, `/a%2f${it}`]),
  ...SEPARATORS.flatMap((it) => [`/a${it}..${it}b`, `/a${it}..`, `/..${it}a`, `/a${it}%2e/b`]),
]

/** Legitimate, and forwarded byte for byte. */
const KEPT: readonly string[] = [
  '/caf%C3%A9/%E6%97%A5%E6%9C%AC.txt',
  '/caf%E9/na%EFve.',
  '/a%ef%bc%8eb',
  '/1%E2%80%A4%E2%80%A4%E2%80%A4',
  '/%E2%80%A6',
  '/a%E3%80%82%E3%80%82/b',
  '/%E3%80%82',
  '/%EF%BD%A1%EF%BD%A1/a',
  '/a%c0%aeb',
  '/%c0%af',
  '/a%E2%88%95b',
  '/%C2%A5100',
  '/%ff%fe/%80',
  '/%uD83D%u0041',
  '/%F0%9F%98%80',
  '/.well-known/..%c0%aea',
  '/a?q=%c0%ae%c0%ae/%ef%bc%8e',
]

describe('a path is not sent that a destination may read as climbing:', () => {
  for (const path of new Set(CLIMBS)) {
    test(path, () => {
      const base = parseBase('https://example.com/bound')
      assert.throws(() => joinDestination(base, path), { code: 'path_invalid' })
    })
  }
})

describe('a path that only resembles one is sent as it is:', () => {
  for (const path of KEPT) {
    test(path, () => {
      const { href } = joinDestination(parseBase('https://example.com/bound'), path)
      assert.equal(href, `https://example.com/bound${path}`)
    })
  }
})

test('a long path of invisible characters takes no long time', () => {
  const base = parseBase('https://example.com')
  for (const part of ['.%80', '%c0', '%e2%80%8b', '.', '%e0%40', '%25c0%25']) {
    const path = `/${part.repeat(Math.floor(60_000 / part.length))}x`
    // Takes minutes if each character is tried as a start.
    assert.doesNotThrow(() => {
      try {
        joinDestination(base, path)
      } catch (error) {
        assert.equal((error as { code: string }).code, 'path_invalid')
      }
    })
  }
})

describe('over a connection', () => {
  let stage: ProxyStage
  before(async () => {
    stage = await proxyStage()
  })
  after(() => stage.close())

  const ask = async (target: string): Promise<string> => {
    const headers = `Host: x\r\nBT-API-KEY: ${stage.key}\r\nBT-PROXY-URL: ${stage.destination.url}/bound`
    return await stage.talk(`GET ${target} HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`)
  }

  test('the destination receives none of them, in the bytes of any encoding', async () => {
    for (const path of [
      '/%c0%ae%c0%ae/a',
      '/\u00ef\u00bc\u008e\u00ef\u00bc\u008e/a',
      '/a%25u2215..',
    ]) {
      const answer = await ask(`/proxy${path}`)
      assert.match(answer, /^HTTP\/1\.1 400 /)
      // Raw bytes beyond ASCII are refused before the path is read.
      assert.match(answer, /"code":"(?:path_invalid|body_invalid)"/)
    }
    assert.equal(stage.destination.received.length, 0)
    assert.match(await ask('/proxy/caf%e9'), /^HTTP\/1\.1 200 /)
    assert.deepEqual(
      stage.destination.received.map((it) => it.line),
      ['GET /bound/caf%e9 HTTP/1.1'],
    )
  })

  test('no other operation of the service is reached by one: not past a server in front that allows a prefix', async () => {
    for (const dot of ['%c0%ae', '%ef%bc%8e', '\u00ef\u00bc\u008e', '%252e', '%2e', '.']) {
      for (const slash of ['/', '%c0%af', '%ef%bc%8f', '%2f']) {
        const target = `/tokens/x${slash}${dot}${dot}${slash}${dot}${dot}${slash}applications/key`
        assert.match(await ask(target), /^HTTP\/1\.1 40[0-4] /, target)
      }
    }
    assert.match(await ask('/applications/key'), /^HTTP\/1\.1 200 /)
  })
})

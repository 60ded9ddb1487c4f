import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { constants, zstdCompressSync } from 'node:zlib'
import { MiB } from '../base/limits.ts'
import { acceptedFrom, decoderFor } from './content-coding.ts'

describe('acceptedFrom() asks for what can be read here, and knows what the caller takes:', () => {
  const cases: [sent: string[], asked: string, takes: string[], refuses: string[]][] = [
    [[], 'gzip', [], ['gzip', 'br']],
    [['Range', 'bytes=0-1'], 'identity', [], ['gzip']],
    [['Accept-Encoding', ''], 'identity', [], ['gzip']],
    [['Accept-Encoding', 'identity'], 'identity', [], ['gzip']],
    [['Accept-Encoding', 'compress, sdch'], 'identity', ['compress'], ['gzip']],
    [['accept-encoding', 'gzip, deflate, br, zstd'], 'gzip, deflate, br, zstd', ['br'], []],
    [['Accept-Encoding', 'GZIP;q=0.5,Br'], 'GZIP;q=0.5, Br', ['gzip', 'x-gzip', 'br'], ['zstd']],
    [['Accept-Encoding', 'gzip;q=0, br'], 'gzip;q=0, br', ['br'], ['gzip']],
    [['Accept-Encoding', 'gzip; q=0.000'], 'gzip; q=0.000', [], ['gzip']],
    [['Accept-Encoding', '*'], 'gzip', ['gzip', 'br', 'anything'], []],
    [['Accept-Encoding', 'br, *;q=0.1'], 'br, gzip;q=0.1', ['br', 'zstd'], []],
    [['Accept-Encoding', 'gzip;q=0, *'], 'gzip;q=0', ['br'], ['gzip']],
    [['Accept-Encoding', 'br, *;q=0'], 'br, gzip;q=0', ['br'], ['gzip', 'zstd']],
    [['Accept-Encoding', 'br', 'ACCEPT-ENCODING', 'gzip'], 'br, gzip', ['br', 'gzip'], ['zstd']],
  ]
  for (const [sent, asked, takes, refuses] of cases) {
    test(JSON.stringify(sent), () => {
      const accepted = acceptedFrom(sent)
      assert.equal(accepted.asked, asked)
      for (const it of takes) assert.equal(accepted.takes(it), true, it)
      for (const it of refuses) assert.equal(accepted.takes(it), false, it)
    })
  }
})

test('decoderFor() refuses to hold more than 8 MiB of what was read', async () => {
  const compressed = (windowLog: number): Buffer =>
    zstdCompressSync(Buffer.alloc(16 * MiB), {
      params: { [constants.ZSTD_c_windowLog]: windowLog },
    })
  const fine = decoderFor('zstd', Buffer.alloc(1))!
  fine.resume().end(compressed(23))
  await once(fine, 'end')
  const greedy = decoderFor('zstd', Buffer.alloc(1))!
  greedy.resume().end(compressed(24))
  await assert.rejects(once(greedy, 'end'), { code: 'ZSTD_error_frameParameter_windowTooLarge' })
})

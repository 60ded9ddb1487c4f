import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { canaryOf, findTrace, findTracesInFiles, PORTION_BYTES, tracesOf } from './canary.ts'

describe('findTracesInFiles() finds a canary', () => {
  const canary = canaryOf(1)
  const secret = `${canary.text}-and-more`
  const numbers = `${canary.digits}1234`

  const written: [name: string, write: (text: string) => string | Buffer][] = [
    ['as it is', (text) => text],
    ['in UTF-16', (text) => Buffer.from(text, 'utf16le')],
    ['in UTF-16, big end first', (text) => Buffer.from(text, 'utf16le').swap16()],
    ['in hex', (text) => Buffer.from(text).toString('hex')],
    ['in hex in capitals', (text) => Buffer.from(text).toString('hex').toUpperCase()],
    ['in base64', (text) => btoa(text)],
    ['in base64 after one byte', (text) => btoa(`x${text}`)],
    ['in base64 after two bytes', (text) => btoa(`xy${text}`)],
    [
      'in base64 in the middle of much',
      (text) => btoa(`${'z'.repeat(1000)}${text}${'z'.repeat(1000)}`),
    ],
    ['in base64url', (text) => Buffer.from(`?${text}~`).toString('base64url')],
    ['in a URL', (text) => `/search?q=${encodeURIComponent(` ${text}/ü`)}`],
    [
      'in a URL that encodes everything',
      (text) => text.replaceAll(/./g, (it) => `%${it.charCodeAt(0).toString(16)}`),
    ],
    ['in JSON', (text) => JSON.stringify({ a: [`"${text}\n`] })],
    [
      'in JSON that escapes everything',
      (text) =>
        text.replaceAll(/./g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`),
    ],
    ['in a list of bytes', (text) => JSON.stringify([...Buffer.from(text)])],
  ]
  for (const [name, write] of written) {
    for (const [kind, text] of [
      ['text', secret],
      ['digits', numbers],
    ] as const) {
      test(`${name}: ${kind}`, () => {
        inFolder((folder) => {
          const noise = Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 7919) % 251))
          writeFileSync(join(folder, 'clean'), noise)
          assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), [])
          writeFileSync(
            join(folder, 'page'),
            Buffer.concat([noise, Buffer.from(write(text)), noise]),
          )
          const [found, ...others] = findTracesInFiles(tracesOf(canary), folder)
          assert.match(found!, new RegExp(`^page: ${kind}, `))
          assert.deepEqual(others, [])
        })
      })
    }
  }

  test('across the portions in which a file is read', () => {
    inFolder((folder) => {
      const file = Buffer.alloc(PORTION_BYTES * 2)
      file.write(secret, PORTION_BYTES - 6)
      writeFileSync(join(folder, 'large'), file)
      assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), ['large: text, as it is'])
    })
  })

  test('at the very end of a file in a folder inside', () => {
    inFolder((folder) => {
      const inner = mkdtempSync(join(folder, 'inner-'))
      writeFileSync(join(inner, 'small'), `x${canary.text}`)
      assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), ['small: text, as it is'])
    })
  })

  test('and not that of another run', () => {
    assert.equal(findTrace(tracesOf(canaryOf(2)), Buffer.from(secret + numbers)), null)
  })
})

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-traces-'))
  try {
    work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

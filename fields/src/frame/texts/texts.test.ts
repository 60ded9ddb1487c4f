import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NumberError } from '../../card/card-number.ts'
import type { ExpiryError } from '../../card/expiry-date.ts'
import type { CodeError } from '../../card/security-code.ts'
import type { FieldErrorCode, FieldName } from '../../protocol/messages.ts'
import { english } from './english.ts'
import { LANGUAGES, messageOf, textsFor, type Texts } from './texts.ts'

/** Every code that each field can have: a new one does not compile until it stands here. */
const CODES = {
  number: {
    missing: true,
    incomplete: true,
    invalid: true,
    'brand-not-accepted': true,
  } satisfies Record<NumberError, true>,
  expiry: {
    missing: true,
    incomplete: true,
    invalid: true,
    past: true,
  } satisfies Record<ExpiryError, true>,
  cvc: { missing: true, incomplete: true, invalid: true } satisfies Record<CodeError, true>,
  name: { missing: true, 'too-long': true },
  'postal-code': { missing: true, 'too-long': true },
  text: { missing: true, 'too-long': true },
} satisfies Record<FieldName, Partial<Record<FieldErrorCode, true>>>

/** Texts that are truly the same as in English, by language. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  de: ['labels.text'],
  ja: ['placeholders.expiry'],
  ar: ['placeholders.expiry'],
}

test('there are ten languages, each once', () => {
  const languages = LANGUAGES.map((it) => it.language)
  assert.deepEqual(languages.toSorted(), 'ar de en es fr it ja nl pl pt'.split(' '))
})

for (const texts of LANGUAGES) {
  describe(texts.language, () => {
    test('has exactly the texts of English, none empty', () => {
      assert.deepEqual([...membersOf(texts).keys()], [...membersOf(english).keys()])
      for (const [name, text] of membersOf(texts)) {
        assert.equal(text, text.trim(), name)
        assert.notEqual(text, '', name)
      }
    })

    test('has a message of its own for every code of every field', () => {
      for (const [field, codes] of Object.entries(CODES)) {
        const messages = Object.keys(codes).map((code) => {
          const message = messageOf(texts, field as FieldName, code as FieldErrorCode)
          assert.notEqual(message, code, `${field}.${code}`)
          return message
        })
        assert.equal(new Set(messages).size, messages.length, field)
      }
    })

    test('has no message that no field can have', () => {
      const possible = Object.entries(CODES).flatMap(([field, codes]) =>
        Object.keys(codes).flatMap((code) => [code, `${field}.${code}`]),
      )
      for (const name of Object.keys(texts.errors)) assert.ok(possible.includes(name), name)
    })

    test('is of the direction that its language has', () => {
      const direction = /\p{Script=Arabic}/u.test(texts.title) ? 'rtl' : 'ltr'
      assert.equal(texts.direction, direction)
    })

    test('ends its sentences, and no label', () => {
      for (const text of Object.values(texts.errors)) assert.match(text, /[.。]$/)
      for (const text of Object.values(texts.labels)) assert.doesNotMatch(text, /[.。:]$/)
    })

    if (texts === english) return

    test('shares no text with English', () => {
      const same = [...membersOf(texts)]
        .filter(([name, text]) => name !== 'direction' && membersOf(english).get(name) === text)
        .map(([name]) => name)
      assert.deepEqual(same, SAME[texts.language] ?? [])
    })
  })
}

test('textsFor() finds the language, whatever the region and however it is written', () => {
  for (const [locale, language] of [
    ['de', 'de'],
    ['de-AT', 'de'],
    ['pt_BR', 'pt'],
    ['PT-br', 'pt'],
    ['ja-JP-u-ca-japanese', 'ja'],
    ['ar-EG', 'ar'],
    ['en-GB', 'en'],
    ['xx', 'en'],
    ['', 'en'],
    ['-', 'en'],
    ['deutsch', 'en'],
    ['__proto__', 'en'],
  ] as const) {
    assert.equal(textsFor(locale).language, language, locale)
  }
})

/** Returns the texts by path, such as `labels.number`. */
function membersOf(texts: Texts): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [name, value] of Object.entries(texts)) {
    if (typeof value === 'string') found.set(name, value)
    else {
      for (const [member, text] of Object.entries(value as Readonly<Record<string, string>>)) {
        found.set(`${name}.${member}`, text)
      }
    }
  }
  return found
}

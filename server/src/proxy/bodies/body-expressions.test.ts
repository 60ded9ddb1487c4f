import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Json } from '../../base/json.ts'
import {
  DETOKENIZE_REFERENCES_MAX,
  ERROR_PATH_CHARS_MAX,
  MULTIPART_PARTS_MAX,
  PART_HEADER_SECTION_BYTES_MAX,
  RENDERED_BODY_BYTES_MAX,
} from '../../base/limits.ts'
import { CostBudget } from '../../expressions/template.ts'
import type { TokenReference } from '../../tokens/token-references.ts'
import { runToCompletion, findBodyExpressions } from './body-expressions.ts'

const EVALUATION_CONTEXT = { random: { bytes: (length: number) => new Uint8Array(length) } }

function vectorsOf(folder: string, name: string): unknown {
  const url = new URL(`../../../test/vectors/${folder}/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8'))
}

function render(
  body: string | Buffer,
  type: string | undefined,
  valueOf: (reference: TokenReference) => Json,
): Buffer {
  return runToCompletion(
    findBodyExpressions(Buffer.from(body as string), type).render(EVALUATION_CONTEXT, valueOf),
  )
}

describe('findBodyExpressions() gives what is documented', () => {
  interface Documented {
    readonly reason: string
    readonly type: string | null
    readonly body: string
    readonly expected: string
    readonly refused?: string
    readonly at: string
  }

  const { tokens, wholes, cases } = vectorsOf('proxy-bodies', 'documented') as {
    readonly tokens: Record<string, Json>
    readonly wholes: Record<string, Json>
    readonly cases: readonly Documented[]
  }

  const valueOf = ({ id, whole }: TokenReference): Json => {
    const value = (whole ? wholes : tokens)[id]
    assert.ok(value !== undefined, `there is no ${id}`)
    return value
  }

  for (const { reason, type, body, expected, refused, at } of cases) {
    test(reason, () => {
      const rendered = (): Buffer => render(body, type ?? undefined, valueOf)
      if (refused === undefined) assert.equal(rendered().toString(), expected)
      else {
        assert.throws(rendered, (error: { code?: string; errors?: object }) => {
          assert.equal(error.code, refused)
          assert.deepEqual(Object.keys(error.errors!), [at])
          return true
        })
      }
    })
  }
})

describe('findBodyExpressions() applies each documented filter to a token', () => {
  interface Documented {
    readonly comment: string
    readonly data: Json
    readonly expression: string
    readonly expected?: Json
    readonly error?: string
  }

  const SUBJECT = /\{\{ *data((?:\.\w+|\[\d+\])*)/g
  const cases = vectorsOf('expressions', 'documented') as readonly Documented[]
  for (const { comment, data, expression, expected, error } of cases) {
    const asked = expression.replaceAll(SUBJECT, (_, path: string) =>
      path === '' ? '{{ an-id 4' : `{{ an-id 4 | json: '$${path}'`,
    )
    test(`${asked}: ${comment}`, () => {
      const body = JSON.stringify({ a: asked })
      const rendered = (): Buffer => render(body, 'application/json', () => data)
      if (error !== undefined) assert.throws(rendered, { code: 'expression_invalid' })
      else {
        const typed = /to_(?:number|boolean) \}\}$/.test(asked) || typeof expected === 'string'
        const scalar = typeof expected === 'number' || typeof expected === 'boolean'
        const a = scalar && !typed ? String(expected) : expected
        assert.deepEqual(JSON.parse(rendered().toString()), { a })
      }
    })
  }
})

describe('a value stays where it is put', () => {
  interface Hostile {
    readonly reason: string
    readonly type: string
    readonly body: string
    readonly value: string
    readonly expected: string
    readonly intended: Json
    readonly refused?: string
  }

  const cases = vectorsOf('proxy-bodies', 'hostile') as readonly Hostile[]
  test('in many cases', () => assert.ok(cases.length >= 120))
  for (const { reason, type, body, value, expected, intended, refused } of cases) {
    test(reason, async () => {
      const rendered = (): string => render(body, type, () => value).toString()
      if (refused !== undefined) assert.throws(rendered, { code: refused })
      else {
        assert.equal(rendered(), expected)
        assert.deepEqual(await parsed(rendered(), type), intended)
      }
    })
  }

  /** Parses a body as a destination would. */
  async function parsed(body: string, type: string): Promise<unknown> {
    const [essence] = type.split(';')
    if (essence === 'application/json') return JSON.parse(body)
    if (essence === 'application/x-ndjson') {
      const lines = body.split('\n')
      assert.equal(lines.pop(), '')
      return lines.map((it) => JSON.parse(it) as Json)
    }
    if (essence === 'text/plain') return body
    if (essence!.includes('xml')) return parsedXml(body)
    const answer = new Response(body, { headers: { 'content-type': type } })
    const form = await answer.formData()
    return Promise.all(
      Array.from(form, async ([name, it]) => [name, typeof it === 'string' ? it : await it.text()]),
    )
  }

  /** Parses only the two forms used by the cases. */
  function parsedXml(body: string): unknown {
    const attributes = /^<r v='([^'<]*)' w="([^"<]*)"\/>$/.exec(body)
    if (attributes !== null) return { v: resolved(attributes[1]!), w: resolved(attributes[2]!) }
    const [, content] = /^<r><v>([^]*)<\/v>(?:<w\/>)?<\/r>$/.exec(body)!
    const pieces = content!.split(/<!\[CDATA\[([^]*?)\]\]>/)
    const texts = pieces.map((it, at) => {
      if (at % 2 === 1) return it
      assert.doesNotMatch(it, /<|\]\]>/)
      return resolved(it)
    })
    return { v: texts.join('') }
  }

  function resolved(text: string): string {
    const names: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
    return text.replaceAll(/&(.*?);/g, (_, name: string) =>
      name.startsWith('#') ? String.fromCodePoint(Number(name.slice(1))) : names[name]!,
    )
  }
})

test('findBodyExpressions() returns the very same bytes when there is no expression in them', () => {
  const types = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', undefined]
  for (const type of [...types, 'text/xml', 'multipart/form-data; boundary=x', 'image/png']) {
    const bytes = Buffer.from('{"a": "{ }} \\u007d %7D"}')
    const body = findBodyExpressions(bytes, type)
    assert.deepEqual(body.references, [])
    assert.equal(
      runToCompletion(body.render(EVALUATION_CONTEXT, () => assert.fail('nothing is referenced'))),
      bytes,
    )
  }
})

test('findBodyExpressions() lists what is referenced in order of appearance, as often as it is', () => {
  const body = findBodyExpressions(
    Buffer.from('{"a":"{{ x | last4 }}-{{y}}","b":["{{ token: x }}"]}'),
    'application/json',
  )
  const listed = body.references.map(({ id, whole }) => [id, whole])
  assert.deepEqual(listed, [
    ['x', false],
    ['y', false],
    ['x', true],
  ])
  assert.deepEqual(
    body.locations.map((it) => it.path()),
    ['a', 'b[0]'],
  )
})

test('a value may not end its part together with what stands beside it', () => {
  const type = 'multipart/form-data; boundary=bound'
  const values: Record<string, string> = { a: '-', b: 'bo', c: 'd', none: '' }
  const rendered = (content: string): Buffer =>
    render(`--bound\r\n\r\n\r\n${content}\r\n--bound--`, type, ({ id }) => values[id]!)
  for (const content of [
    '-{{a}}bound',
    '--{{b}}und',
    '--boun{{c}}',
    '{{a}}-{{b}}un{{c}}',
    '--b{{none}}ound',
  ]) {
    assert.throws(() => rendered(content), { code: 'expression_invalid' }, content)
  }
  for (const content of ['-{{a}}boun', '--{{b}}un', '{{a}}-{{b}}un', 'x--bound {{a}}']) {
    assert.doesNotThrow(() => rendered(content), content)
  }
})

test('half of a surrogate pair is escaped where it can be, and refused elsewhere', () => {
  const half = '\ud83d'
  assert.equal(render('["{{x}}"]', 'application/json', () => half).toString(), '["\\ud83d"]')
  for (const type of ['text/plain', 'text/xml', 'application/x-www-form-urlencoded']) {
    assert.throws(() => render('a={{x}}', type, () => half), { code: 'expression_invalid' }, type)
  }
})

test('bytes that are no UTF-8 pass, but not as part of an expression', () => {
  const around = (text: string): Buffer =>
    Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text), Buffer.from([0xc3, 0x28])])
  const json = (text: string): Buffer =>
    Buffer.concat([Buffer.from('["'), around(`","${text}`), Buffer.from('"]')])
  assert.deepEqual(
    render(around('{{ a }}'), 'text/plain', () => 'e'),
    around('e'),
  )
  // The character set is unknown, and so are the bytes of an é.
  assert.throws(() => render(around('{{ a }}'), 'text/plain', () => 'é'), {
    code: 'expression_invalid',
  })
  assert.deepEqual(
    render(around('<a>{{ a }}</a>'), 'text/xml', () => 'é'),
    around('<a>&#233;</a>'),
  )
  const still = Buffer.concat([
    Buffer.from('{"\xff":"\xff","a":"', 'latin1'),
    Buffer.from('{{ a }}"}'),
  ])
  const changed = Buffer.from('{"\xff":"\xff","a":"\\u00e9"}', 'latin1')
  assert.deepEqual(
    render(still, 'application/json', () => 'é'),
    changed,
  )
  for (const [type, bytes] of [
    ['text/plain', Buffer.from('{{ \xff }}', 'latin1')],
    ['application/json', json('{{ a }}')],
    ['application/x-www-form-urlencoded', Buffer.from('a={{ a }}%FF')],
  ] as const) {
    assert.throws(() => render(bytes, type, () => 'é'), { code: 'expression_invalid' })
  }
})

describe('no expression is forwarded as it is without a word', () => {
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')
  const swapped = (text: string): Buffer => utf16(text).swap16()
  const utf32 = (text: string): Buffer =>
    Buffer.concat(Array.from(text, (it) => Buffer.from(`${it}\0\0\0`)))
  const refused: [name: string, type: string, bytes: Buffer][] = [
    ['JSON in UTF-16', 'application/json', utf16('{"n":"{{ x }}"}')],
    ['JSON in UTF-16, big end first, escaped', 'application/json', swapped('["\\u007b{ x }}"]')],
    ['JSON in UTF-32', 'application/json', utf32('{"n":"{{ x }}"}')],
    ['labelled JSON in UTF-16', 'application/json; charset=utf-16', utf16('["{{ x }}"]')],
    ['a form in UTF-16', 'application/x-www-form-urlencoded', utf16('a=%7b%7B x }}')],
    ['text in UTF-16', 'text/plain; charset=utf-16le', utf16('{{ x }}')],
    [
      'XML in UTF-16',
      'text/xml',
      swapped('\ufeff<?xml version="1.0" encoding="UTF-16"?><a>{{ x }}</a>'),
    ],
    ['EBCDIC', 'text/plain; charset=IBM1047', Buffer.of(0xc0, 0xc0, 0xa7, 0xd0, 0xd0)],
    ['German EBCDIC', 'text/plain; charset=cp273', Buffer.of(0x43, 0x43, 0xa7, 0xdc, 0xdc)],
    [
      'GBK with a brace at the end of a character',
      'text/plain; charset=gbk',
      Buffer.of(0x81, 0x7b, 0x7b),
    ],
    ['Shift_JIS', 'text/csv; charset=Shift_JIS', Buffer.from('\x83\x41,{{ x }}', 'latin1')],
    [
      'XML in Big5',
      'text/xml',
      Buffer.from('<?xml version="1.0" encoding="big5"?>\xa4\xa4{{ x }}', 'latin1'),
    ],
  ]
  for (const [name, type, bytes] of refused) {
    const part = Buffer.concat([
      Buffer.from(`--b\r\nContent-Type: ${type}\r\n\r\n`),
      bytes,
      Buffer.from('\r\n--b--'),
    ])
    test(`${name} is refused, with the reason`, () => {
      const at =
        (path: string) => (error: { code?: string; errors?: Record<string, string[]> }) => {
          assert.equal(error.code, 'body_invalid')
          const [reason] = error.errors![path]!
          assert.match(
            reason!,
            /^It may hold an expression, and none can be replaced safely in .+: send UTF-8$/,
          )
          return true
        }
      assert.throws(() => findBodyExpressions(bytes, type), at('error'))
      assert.throws(() => findBodyExpressions(part, 'multipart/mixed; boundary=b'), at('[0]'))
    })

    test(`${name} passes without braces`, () => {
      const still = Buffer.from(
        bytes.map((it) => (it === 0x7b || it === 0x43 || it === 0xc0 ? 0x31 : it)),
      )
      if (type.includes('form')) still.write('5', still.indexOf('%') + 2)
      const read = findBodyExpressions(
        Buffer.from(still.toString('latin1').replaceAll('7', '1'), 'latin1'),
        type,
      )
      assert.deepEqual(read.references, [])
      assert.equal(read.unread, false)
    })
  }

  const marked: [name: string, type: string, body: string][] = [
    ['parts of a kind that is not read', 'multipart/digest; boundary=b', '{{ x }}'],
    ['a type that is too long', `text/plain; a=${'b'.repeat(2_000)}`, '{{ x }}'],
    [
      'a text part in base64',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Transfer-Encoding: base64\r\n\r\ne3sgeCB9fQ==\r\n--b--',
    ],
  ]
  for (const [name, type, body] of marked) {
    test(`${name}: the caller gets a notice that it was not read`, () => {
      assert.equal(findBodyExpressions(Buffer.from(body), type).unread, true)
    })
  }

  test('for files and images there is no notice', () => {
    const file =
      'Content-Disposition: form-data; name=a; filename=b\r\nContent-Transfer-Encoding: base64'
    for (const headerSection of [file, 'Content-Type: image/png']) {
      const body = Buffer.from(`--b\r\n${headerSection}\r\n\r\n{{ x }}\r\n--b--`)
      assert.equal(findBodyExpressions(body, 'multipart/form-data; boundary=b').unread, false)
    }
    assert.equal(findBodyExpressions(Buffer.from('{{ x }}'), 'image/png').unread, false)
  })
})

test('bytes around an expression stay as they are in any superset of ASCII', () => {
  const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
  for (const charset of ['windows-1251', 'iso-8859-15', 'euc-jp']) {
    const type = `text/plain; charset=${charset}`
    assert.deepEqual(
      render(latin1('\xe9\xa4 {{ x }} \xff'), type, () => '42'),
      latin1('\xe9\xa4 42 \xff'),
    )
    assert.throws(
      () => render(latin1('\xe9 {{ x }}'), type, () => 'é'),
      (error: { errors?: object }) => {
        assert.match(JSON.stringify(error.errors), /Only ASCII can be inserted into a body in this/)
        return true
      },
    )
    assert.throws(() => findBodyExpressions(latin1('{{ \xe9 }}'), type), {
      code: 'expression_invalid',
    })
  }
})

test('Latin-1 is read and written as Latin-1', () => {
  const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
  const cases: [type: string, sent: string, arrives: string][] = [
    ['text/plain', 'é {{ é }}', 'é ü'],
    ['application/xml', '<é>{{ é }}</é>', '<é>ü</é>'],
    ['application/x-www-form-urlencoded', 'a={{ é }}', 'a=%FC'],
    ['application/json', '["é","{{ é }}"]', '["é","\\u00fc"]'],
  ]
  for (const [type, sent, arrives] of cases) {
    const rendered = render(latin1(sent), `${type}; charset=ISO-8859-1`, ({ id }) => {
      assert.equal(id, 'é')
      return 'ü'
    })
    assert.deepEqual(rendered, latin1(arrives))
  }
})

test('declarations in declarations take as long as they are, however deep', () => {
  for (const opening of ['<![', '<!a [<!', '<!a [<!-- -->']) {
    const body = `${opening.repeat(1_000_000 / opening.length)}{{ x }}`
    assert.equal(render(body, 'text/xml', () => assert.fail('nothing is found')).toString(), body)
  }
})

test('depth is bounded by nothing but length, and a location is named in few words', () => {
  const deep = '['.repeat(200_000) + '"{{ x }}"' + ']'.repeat(200_000)
  assert.equal(render(deep, 'application/json', () => 'y').length, 400_003)
  const wrong = `{"${'n'.repeat(100_000)}":"{{ x"}`
  assert.throws(
    () => findBodyExpressions(Buffer.from(wrong), 'application/json'),
    (error: { errors?: object }) =>
      Object.keys(error.errors!)[0]!.length <= ERROR_PATH_CHARS_MAX + 1,
  )
})

test('a value that cannot stand in broken JSON is refused with the reason that it is broken', () => {
  const refusalOf = (body: string, value: Json): unknown => {
    try {
      return render(body, 'application/json', () => value).toString()
    } catch (error) {
      return (error as { errors: object }).errors
    }
  }
  const reason = 'The value has characters that cannot stand there'
  assert.deepEqual(refusalOf('{"a": "{{x}}",}', 'a, b'), {
    error: [`${reason}, for the body is not the JSON that it says it is`],
  })
  assert.equal(refusalOf('{"a": "{{x}}",}', 'a b'), '{"a": "a b",}')
  // Gson reads `{"a": b; c=d}` as two members, and many parsers read `#` as the start of a comment.
  for (const value of [
    'b; c',
    'b=c',
    'b # c',
    'b: c',
    'b}',
    '"b',
    'b\\',
    'b\n',
    'b /* c',
    'b // c',
  ]) {
    assert.equal(typeof refusalOf('{"a": {{x}}}', value), 'object', value)
  }
})

test('no value ends a section of XML where there is none, not even with what is behind it', () => {
  const rendered = (body: string, values: Record<string, string>): string =>
    render(body, 'text/xml', ({ id }) => values[id]!).toString()
  assert.equal(rendered('<a>{{x}}></a>', { x: 'b]]' }), '<a>b&#93;&#93;></a>')
  assert.equal(rendered('<a>{{x}}]></a>', { x: 'b]' }), '<a>b&#93;]></a>')
  assert.equal(rendered('<a>]{{x}}></a>', { x: ']' }), '<a>]&#93;></a>')
  assert.equal(rendered('<a>{{x}}{{y}}></a>', { x: ']]', y: '' }), '<a>&#93;&#93;></a>')
  assert.equal(rendered('<a>{{x}}b</a>', { x: ']]' }), '<a>]]b</a>')
  // Must return at once, whatever the length: a regular expression for the end took minutes.
  const long = `${']'.repeat(1_000_000)}b`
  assert.equal(rendered('<a>{{x}}></a>', { x: long }), `<a>${long}></a>`)
})

test('a name may stand in broken JSON, which no destination gets', () => {
  const read = findBodyExpressions(Buffer.from('{"a": "{{x}}", b: {{y}},}'), 'application/json')
  const outline = read.outline(({ id }) => `[token ${id}]`).toString()
  assert.equal(outline, '{"a": "[token x]", b: [token y],}')
})

describe('what a body may have is bounded', () => {
  const many = (count: number): string => '{{x}}'.repeat(count)
  const bodies: [kind: string, type: string, of: (count: number) => string][] = [
    ['JSON', 'application/json', (count) => `["${many(count)}"]`],
    ['strings of JSON', 'application/json', (count) => JSON.stringify(Array(count).fill('{{x}}'))],
    ['text', 'text/plain', many],
    ['a form', 'application/x-www-form-urlencoded', (count) => `a=${many(count)}`],
    ['XML', 'text/xml', many],
    [
      'parts',
      'multipart/form-data; boundary=b',
      (count) => `--b\r\n\r\n${many(count - 1)}\r\n--b\r\n\r\n{{x}}\r\n--b--`,
    ],
  ]
  for (const [kind, type, of] of bodies) {
    test(`${DETOKENIZE_REFERENCES_MAX} expressions in ${kind}`, () => {
      const read = (count: number) => findBodyExpressions(Buffer.from(of(count)), type)
      for (const count of [DETOKENIZE_REFERENCES_MAX - 1, DETOKENIZE_REFERENCES_MAX]) {
        assert.equal(read(count).references.length, count)
      }
      assert.throws(() => read(DETOKENIZE_REFERENCES_MAX + 1), { code: 'detokenize_tokens_max' })
    })

    test(`behind ${DETOKENIZE_REFERENCES_MAX} expressions in ${kind} nothing is looked for`, () => {
      const body = of(DETOKENIZE_REFERENCES_MAX + 1)
      const end = body.lastIndexOf('{{x}}') + 5
      const unclosed = Buffer.from(`${body.slice(0, end)}{{${body.slice(end)}`)
      assert.throws(() => findBodyExpressions(unclosed, type), { code: 'detokenize_tokens_max' })
    })
  }

  test(`${MULTIPART_PARTS_MAX} parts`, () => {
    const read = (count: number) => {
      const parts = `--b\r\n\r\n{{x}}\r\n`.repeat(count)
      return findBodyExpressions(Buffer.from(`${parts}--b--`), 'multipart/form-data; boundary=b')
    }
    for (const count of [MULTIPART_PARTS_MAX - 1, MULTIPART_PARTS_MAX]) {
      assert.equal(read(count).references.length, count)
    }
    assert.throws(() => read(MULTIPART_PARTS_MAX + 1), { code: 'body_invalid' })
  })

  test('the headers of a part', () => {
    const read = (length: number) => {
      const headerSection = 'a:'.padEnd(length, ' ')
      const part = `--b\r\n${headerSection}\r\n\r\n{{x}}\r\n--b--`
      return findBodyExpressions(Buffer.from(part), 'multipart/form-data; boundary=b')
    }
    for (const length of [PART_HEADER_SECTION_BYTES_MAX - 1, PART_HEADER_SECTION_BYTES_MAX]) {
      assert.equal(read(length).references.length, 1)
    }
    assert.throws(() => read(PART_HEADER_SECTION_BYTES_MAX + 1), { code: 'body_invalid' })
  })

  test('what is written in all', () => {
    const body = findBodyExpressions(
      Buffer.from(JSON.stringify(Array(8).fill('{{x}}'))),
      'application/json',
    )
    const filled = (length: number): Buffer =>
      runToCompletion(body.render(EVALUATION_CONTEXT, () => '"'.repeat(length)))
    // Each quote takes two bytes, plus two for the string.
    const most = RENDERED_BODY_BYTES_MAX / 8 / 2 - 1
    assert.equal(filled(most).length, RENDERED_BODY_BYTES_MAX + 9)
    assert.throws(() => filled(most + 1), { code: 'expression_invalid' })
  })

  test('what expressions do together', () => {
    const body = findBodyExpressions(Buffer.from('{{x}}{{x}}'), 'text/plain')
    const rendered = (shown: number): Buffer =>
      runToCompletion(
        body.render(
          { ...EVALUATION_CONTEXT, costBudget: new CostBudget(1_000, shown) },
          () => 'four',
        ),
      )
    assert.throws(() => rendered(11), { code: 'expression_invalid' })
    assert.equal(rendered(12).toString(), 'fourfour')
  })
})

test('no error repeats what was sent, or what a token holds', () => {
  const secret = 's3cr3t'
  const cases: [type: string, body: string][] = [
    ['application/json', `["{{ x | to_number }}${secret}"]`],
    ['application/json', `{"a":"{{ x }}${secret}",}`],
    ['application/json', `["{{ ${secret} | nothing }}"]`],
    ['text/plain; charset=us-ascii', `{{ x }}${secret}`],
    ['text/xml', `<a ${secret} {{ x }}>`],
    ['application/x-www-form-urlencoded', `${secret}={{ ${secret}`],
    ['multipart/form-data; boundary=b', `--b\r\n${secret}: ${secret}\r\n\r\n--b {{ x }}\r\n--b--`],
    ['multipart/form-data; boundary=b', `--b\r\n\r\n{{ ${secret}\r\n--b--`],
  ]
  for (const [type, body] of cases) {
    assert.throws(
      () => render(body, type, () => `é, ${secret}`),
      (error: Error & { errors?: object }) => {
        assert.doesNotMatch(JSON.stringify([error.message, error.errors]), /s3cr3t/)
        return true
      },
      body,
    )
  }
})

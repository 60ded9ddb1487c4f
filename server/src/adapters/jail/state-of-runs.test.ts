/** Tests that a process which is kept shows nothing of one caller to the next: in the log, or to the code. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { REACTOR_OUTPUT_BYTES_MAX } from '../../base/limits.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { JailRunner } from './jail-runner.ts'
import { OUTPUT_LINE_BYTES } from './guest/frames.ts'
import { NO_WAY } from './no-way.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

let [heard, left] = ['', '']
const runner = await JailRunner.open({
  level: 'jail',
  packages: [],
  authorities: [],
  waysOut: NO_WAY,
  output: (_, text) => (heard += text),
  over: (_, leftover) => (left = leftover),
  overMsMax: TIMEOUT_MS,
  wallsTestMsMax: TIMEOUT_MS,
})
after(() => runner.close())

const CARD = '4242424242424242'
let reactors = 0

/** Makes a reactor, and returns a function that runs it with a card and returns its result and its output. */
function reactorOf(code: string) {
  const reactorId = `reactor-${++reactors}`
  return async (card: string | null) => {
    heard = ''
    const outcome = await runner.run({
      tenantId: 'tenant',
      reactorId,
      version: '1',
      code,
      args: new Sensitive(JSON.stringify({ card })),
      configuration: new Sensitive('{}'),
      apiKey: null,
      destinations: null,
      timeoutMs: TIMEOUT_MS,
    })
    assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
    const result: unknown =
      outcome.kind === 'returned' ? JSON.parse(String(outcome.result.reveal())) : null
    return { result, said: heard }
  }
}

/** Runs with a card do `leaving`, and all log `hello` and return `seeing`. */
function leavingCode(leaving: string, seeing = 'null', top = ''): string {
  return `let runs = 0
    ${top}
    module.exports = async ({ args: { card } }) => {
      if (card !== null) { ${leaving} }
      console.log('hello')
      return { runs: ++runs, seen: ${seeing} }
    }`
}

describe('output of a run', () => {
  const late = `process.stdout.write('card=' + card)`
  const leftovers: readonly (readonly [what: string, leaving: string])[] = [
    ['a promise wrote', `(async () => { for (let n = 0; n < 50; n++) await null; ${late} })()`],
    ['an immediate wrote', `setImmediate(() => { ${late} })`],
    ['an immediate wrote to stderr', `setImmediate(() => process.stderr.write('card=' + card))`],
    ['the thread pool wrote', `require('crypto').scrypt('a', 'b', 16, () => { ${late} })`],
    [
      'half a character came of',
      `setImmediate(() => process.stdout.write(Buffer.from([0xe2, 0x82])))`,
    ],
    ['is held back', `setImmediate(() => { process.stdout.cork(); ${late} })`],
    [
      'is held back by a prototype',
      `const { cork } = require('stream').Writable.prototype
       cork.call(process.stdout); cork.call(process.stderr); setImmediate(() => { ${late} })`,
    ],
    [
      'is held back by the stream of a console',
      `const { _stdout } = require('console'); setImmediate(() => { _stdout.cork(); ${late} })`,
    ],
    ['is in another encoding', `setImmediate(() => process.stdout.setDefaultEncoding('hex'))`],
    [
      'is closed',
      `const { end } = require('stream').Writable.prototype
       setImmediate(() => end.call(process.stdout))`,
    ],
    ['is in a group', `console.group('group')`],
    [
      'is listened to',
      `const again = () => { process.stdout.once('late', again); ${late} }; again()
       process.stdout.write('\\n')`,
    ],
  ]
  for (const [what, leaving] of leftovers) {
    test(`is its own after a run of which ${what}`, async () => {
      const react = reactorOf(
        leavingCode(leaving, `(process.stdout.uncork(), process.stdout.emit('late'))`),
      )
      await react(CARD)
      const { said, result } = await react(null)
      assert.equal(said, 'hello\n')
      assert.deepEqual(result, { runs: 2, seen: false }, left)
    })
  }

  test('begins with the labels, groups and listeners of the top level, and no others', async () => {
    const react = reactorOf(
      leavingCode(
        `console.count(card); console.count('a'); console.time('t'); console.group()`,
        `[process.stdout.listenerCount('late'), console.count(), console.count('a'), console.timeEnd('t'),
          Reflect.ownKeys(console).map((it) => console[it]).filter(require('util').types.isMap)
            .flatMap((it) => [...Map.prototype.keys.call(it)])]`,
        `console.count('a'); console.group(); process.stdout.on('late', () => {})`,
      ),
    )
    await react(CARD)
    for (const runs of [2, 3]) {
      const { said, result } = await react(null)
      assert.equal(said, '  hello\n  default: 1\n  a: 2\n', left)
      assert.deepEqual(
        result,
        { runs, seen: [1, null, null, null, ['a', 'default'].toSorted()] },
        left,
      )
    }
  })

  test('is joined where a character is split over two writes', async () => {
    const react = reactorOf(`module.exports = () => {
      for (const it of Buffer.from('price 5 €, 💳\\n')) process.stdout.write(Buffer.from([it]))
      process.stdout.write(Buffer.from([0xe2, 0x82]))
    }`)
    assert.equal((await react(null)).said, 'price 5 €, 💳\n\ufffd\n')
  })

  test('is measured as text, so that bytes which are no UTF-8 neither end the run nor exceed the limit', async () => {
    const fit = Math.floor((REACTOR_OUTPUT_BYTES_MAX - OUTPUT_LINE_BYTES - 1) / 3)
    const react = reactorOf(`module.exports = () => {
      process.stdout.write(Buffer.alloc(${fit}, 0xff)); process.stdout.write('\\n')
    }`)
    assert.equal((await react(null)).said, '\ufffd'.repeat(fit) + '\n')
    const over = reactorOf(`module.exports = () => {
      process.stdout.write(Buffer.alloc(${fit + 1}, 0xff)); process.stdout.write('\\n')
    }`)
    assert.equal((await over(null)).said, '')
  })
})

describe('code that runs after another caller sees', () => {
  test('no text that a pattern matched', async () => {
    const all = ['$1', '$9', 'input', 'lastMatch', 'lastParen', 'leftContext', 'rightContext']
    const react = reactorOf(
      leavingCode(
        `setImmediate(() => { RegExp.input = /(4)(.)(.)(.)(.)(.)(.)(.)(42)/.exec('a' + card + 'b').input })`,
        `${JSON.stringify(all)}.map((it) => RegExp[it]).join('')`,
      ),
    )
    await react(CARD)
    assert.deepEqual((await react(null)).result, { runs: 2, seen: '' }, left)
  })

  test('only those marks and measures that the top level made', async () => {
    const react = reactorOf(
      leavingCode(
        `setImmediate(() => {
           performance.mark('top', { detail: card }); performance.mark(card)
           performance.measure(card, 'top'); performance.clearMeasures('whole')
         })`,
        `[performance.measure('since', 'top').startTime === top.startTime,
          performance.getEntries().map((it) => [it.entryType, it.name, it.detail])]`,
        `const top = performance.mark('top', { detail: 1 })
         performance.measure('whole', { start: 0, end: 1 })`,
      ),
    )
    await react(CARD)
    const seen = [
      ['measure', 'whole', null],
      ['mark', 'top', 1],
      ['measure', 'since', null],
    ]
    for (const runs of [2, 3]) {
      const { result } = await react(null)
      const {
        seen: [same, entries],
      } = result as { seen: [boolean, unknown[][]] }
      assert.deepEqual(
        { same, entries: entries.map(String).toSorted() },
        { same: true, entries: seen.map(String).toSorted() },
      )
      assert.equal((result as { runs: number }).runs, runs, left)
    }
  })
})

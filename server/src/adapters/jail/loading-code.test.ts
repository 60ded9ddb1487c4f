import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Sensitive } from '../../base/sensitive.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'
import { JailRunner } from './jail-runner.ts'
import { NO_WAY } from './no-way.ts'

/** Longer than any run here takes on the slowest machine. */
const TIMEOUT_MS = 600_000

/** Code is loaded alike at each level, and processes start fastest at this one. */
const runner = await JailRunner.open({
  level: 'portable',
  packages: [],
  authorities: [],
  waysOut: NO_WAY,
  wallsTestMsMax: TIMEOUT_MS,
})
after(() => runner.close())

const AWAIT = /^`await` is used outside an async function: move it into the exported function/
const MIXTURE = /^The code mixes CommonJS and ES modules: use either `require` and `module.exports`/
const THREW = (said: string) =>
  new RegExp(`^The code threw before it exported a function: ${said}$`)
const ERRORS = `const { BadRequestError, CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')
`

describe('code that fails before it exports a function ends as no-function, with the reason and the position: ', () => {
  const cases: [what: string, code: string, message: RegExp, position: string | null][] = [
    ['no code', '', /^The code exports no function: assign one/, null],
    ['an object', 'module.exports = { a: 1 }', /^The code exports no function/, null],
    ['a named export', 'export const react = () => 1', /^The code exports no function/, null],
    ['an object that is its own default', 'exports.default = exports', THREW('Maximum.*'), null],
    ['what does not parse', 'let a\n  let a', /^The code does not parse: Identifier 'a'/, '2:7'],
    ['an end too early', 'module.exports = (', /^The code does not parse: Unexpected end/, '1:19'],
    ['a module that does not parse', 'export default (', /^The code does not parse: Un/, null],
    ['await beside module.exports', 'await f()\nmodule.exports = () => 1', AWAIT, '1:1'],
    ['await beside require', "const a = await\n  require('uuid')", AWAIT, '1:11'],
    ['await that reads like a call', '\nconst a = await (1)\nexports.a = a', AWAIT, '2:11'],
    ['await of a loop', 'for await (const x of []) {}\nmodule.exports = () => 1', AWAIT, '1:5'],
    ['await in a function that is not async', 'module.exports = () => { await 1 }', AWAIT, '1:26'],
    ['await, and export in a comment', '/*\nexport */ await 1; module.exports = 1', AWAIT, '2:20'],
    ['import beside module.exports', 'import "uuid"\nmodule.exports = () => 1', MIXTURE, '1:1'],
    ['export beside require', "export default require('uuid').v4", MIXTURE, '1:1'],
    ['import.meta beside module.exports', 'module.exports = import.meta.url', MIXTURE, '1:25'],
    ['a throw', '\n  throw new TypeError("no")', THREW('no'), '2:9'],
    ['a throw in a module', 'export default 1; throw new Error("no")', THREW('no'), '1:25'],
    ['a throw of a text', 'throw "no"', THREW('no'), null],
    ['a throw of nothing', 'throw undefined', THREW('undefined'), null],
    [
      'a throw of what is no text',
      'throw Object.create(null)',
      THREW('a value that is not a string'),
      null,
    ],
    [
      'an error with a status',
      `${ERRORS}throw new BadRequestError('x')`,
      THREW('Bad Request'),
      '2:7',
    ],
    [
      'a response',
      `${ERRORS}throw new CustomHttpResponseError({ status: 201 })`,
      THREW('Custom HTTP response'),
      '2:7',
    ],
    [
      'a package that there is not',
      "\nrequire('stripe')",
      THREW("Cannot find module 'stripe'.*PACKAGES"),
      '2:1',
    ],
    [
      'a module that it may not have',
      "require('fs')",
      THREW("Cannot find module 'fs': reactors may not use it"),
      '1:1',
    ],
    [
      'an import that there is not',
      'import "stripe"; export default 1',
      THREW("Cannot find module 'stripe'.*"),
      null,
    ],
    [
      'a name that a package does not export',
      'import { no } from "axios"; export default no',
      /^The code does not parse: Named export 'no' not found/,
      null,
    ],
    [
      'an inner file that a package does not export',
      "require('uuid/v4')",
      THREW("Cannot find module 'uuid/v4': the package uuid does not export it"),
      '1:1',
    ],
    [
      'a getter that throws',
      'module.exports = { get default() { throw new Error("no") } }',
      THREW('no'),
      '1:42',
    ],
    [
      'a promise that fails',
      'module.exports = Promise.reject(new Error("no"))',
      THREW('no'),
      '1:33',
    ],
    [
      'a timer that throws meanwhile',
      'setTimeout(() => { throw new Error("no") }); await new Promise(() => {})\nexport default 1',
      THREW('no'),
      '1:26',
    ],
    [
      'the end of the process',
      'process.exit(0)',
      /^The code ended its process before it exported/,
      null,
    ],
  ]
  for (const [what, code, message, position] of cases) {
    test(what, async () => {
      const outcome = await run(code)
      assert.equal(outcome.kind, 'no-function', JSON.stringify(outcome))
      if (outcome.kind !== 'no-function') return
      assert.match(outcome.message, message)
      assert.equal(
        outcome.position && `${outcome.position.line}:${outcome.position.column}`,
        position,
      )
    })
  }
})

describe('code runs as before', () => {
  const cases: [what: string, code: string, result: unknown][] = [
    ['with await at the top of an ES module', 'const a = await 1; export default () => a', 1],
    ['with await before it exports, on one line', 'await 1; export default async () => 7', 7],
    [
      'as an ES module in parts',
      'const f = () => 5; export { f as default }; export const a = 1',
      5,
    ],
    ['with a line for a shell', '#!/usr/bin/env node\nmodule.exports = () => 1', 1],
    ['as an ES module with a line for a shell', '#!/usr/bin/env node\nexport default () => 1', 1],
    ['with exports.default', 'exports.default = async () => 5', 5],
    ['with a promise of a function', 'module.exports = Promise.resolve(() => 5)', 5],
    [
      'with an import in a function',
      'module.exports = async () => (await import("lodash")).default.add(1, 2)',
      3,
    ],
    [
      'with what require resolves',
      'const at = require.resolve("lodash"); module.exports = () => require(at).add(1, 2)',
      3,
    ],
    ['with this as its exports', 'this.default = () => this === exports', true],
    ['with return', 'module.exports = () => 1; return; throw 1', 1],
    [
      'with stacks of its own making',
      'module.exports = () => { Error.prepareStackTrace = (_, it) => it.length > 0; return new Error().stack }',
      true,
    ],
  ]
  for (const [what, code, result] of cases) {
    test(what, async () => {
      const outcome = await run(code)
      assert.equal(outcome.kind, 'returned', JSON.stringify(outcome))
      assert.deepEqual(
        outcome.kind === 'returned' && JSON.parse(String(outcome.result.reveal())),
        result,
      )
    })
  }
})

describe('a function that throws is reported with its position: ', () => {
  const cases: [what: string, code: string, position: string | null][] = [
    ['in itself', 'module.exports = () => {\n  throw new Error("a")\n}', '2:9'],
    ['in an ES module', 'export default () => { throw new Error("a") }', '1:30'],
    ['later in an ES module', 'export default () => {\n  throw new Error("a") }', '2:9'],
    ['after a pause', 'module.exports = async () => {\n  await 1\n  null.a }', '3:8'],
    ['through a package', "module.exports = () =>\n  require('xmlbuilder2').create('<')", '2:26'],
    ['through Node', 'module.exports = () => JSON.parse("{")', '1:29'],
    [
      'by what caused it',
      'const cause = new Error()\nmodule.exports = () => { const e = new Error("", { cause }); e.stack = ""; throw e }',
      '1:15',
    ],
    [
      'uncaught',
      'module.exports = () => new Promise(() => setTimeout(() => { throw new Error("late") }))',
      '1:67',
    ],
    ['in code of its own making', 'module.exports = () =>\n  eval("null.a")', '2:3'],
    ['in a package that it may not have', "module.exports = () => require('stripe')", '1:24'],
    [
      'not by its message',
      'module.exports = () => { throw new Error("a\\n    at b (/reactor/reactor.js:1:2)") }',
      '1:32',
    ],
    [
      'not beyond its code',
      'module.exports = () => { const e = new Error("a"); e.stack = "a\\n    at b (/reactor/reactor.js:4242:1)"; throw e }',
      null,
    ],
    [
      'not beyond its lines',
      'module.exports = () => { const e = new Error("a"); e.stack = "a\\n    at b (/reactor/reactor.js:1:4242)"; throw e }',
      null,
    ],
    ['not for a text', 'module.exports = () => { throw "a" }', null],
    [
      'not by a stack that is none',
      'module.exports = () => { throw Object.defineProperty(new Error("a"), "stack", { get() { throw 1 } }) }',
      null,
    ],
  ]
  for (const [what, code, position] of cases) {
    test(what, async () => {
      const outcome = await run(code)
      assert.equal(outcome.kind, 'threw', JSON.stringify(outcome))
      if (outcome.kind !== 'threw') return
      assert.equal(
        outcome.position && `${outcome.position.line}:${outcome.position.column}`,
        position,
      )
    })
  }
})

/** Each run uses another reactor. */
let runs = 0

async function run(code: string): Promise<ReactorOutcome> {
  return await runner.run({
    tenantId: 'tenant-a',
    reactorId: `reactor-${++runs}`,
    version: '1',
    code,
    args: new Sensitive('{}'),
    configuration: new Sensitive('{}'),
    apiKey: null,
    destinations: null,
    timeoutMs: TIMEOUT_MS,
  })
}

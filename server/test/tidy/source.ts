import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** The folder of the whole project, and the folder of the service in it. */
export const PROJECT = path.join(import.meta.dirname, '../../..')
export const SERVER = path.join(PROJECT, 'server')

/** A source file, in three views of equal length, so that a position is the same in each. */
export interface SourceFile {
  /** Relative to the service's folder, such as `src/tokens/tokenize-plan.ts`. */
  readonly path: string
  readonly text: string
  /** Without comments and the content of quotes and regular expressions; the quotes are kept. */
  readonly code: string
  /** Comments alone. */
  readonly comments: string
}

/** Returns every TypeScript file of the service: its source, tests, benchmarks, build scripts and fault harnesses. */
export function sourceFiles(): readonly SourceFile[] {
  return (read ??= globSync('{src,test,bench,build,crash}/**/*.ts', { cwd: SERVER })
    .filter((it) => !it.endsWith('.d.ts'))
    .sort()
    .map((it) => sourceFile(it, readFileSync(path.join(SERVER, it), 'utf8'))))
}

let read: readonly SourceFile[] | undefined

/** Returns every TypeScript file of the card fields, which browsers run, with their tests; paths begin with `../fields/`. */
export function fieldsFiles(): readonly SourceFile[] {
  return globSync('../fields/{*.ts,{src,test,bench}/**/*.ts}', { cwd: SERVER })
    .sort()
    .map((it) => sourceFile(it, readFileSync(path.join(SERVER, it), 'utf8')))
}

/** Splits `text` into its views. */
export function sourceFile(name: string, text: string): SourceFile {
  let code = ''
  let comments = ''
  for (const { kind, part } of piecesOf(text)) {
    code += kind === 'code' ? part : blank(part)
    comments += kind === 'comment' ? part : blank(part)
  }
  return { path: name, text, code, comments }
}

/** Whether a file is itself a test, wherever it lies. */
export function isTest(file: string): boolean {
  return /\.(test|contract)\.ts$/.test(file) || /^(?:\.\.\/fields\/)?test\//.test(file)
}

/** Returns a location in the format that editors and terminals link: `server/src/a.ts:12`. */
export function linkTo(file: SourceFile, position: number): string {
  const line = file.text.slice(0, position).split('\n').length
  return `${path.posix.join('server', file.path)}:${line}`
}

/** Finds `pattern` in a view and returns, for each match, its location and what to do. */
export function findings(
  file: SourceFile,
  view: 'code' | 'comments',
  pattern: RegExp,
  advice: string,
): string[] {
  return [...file[view].matchAll(pattern)].map(
    (hit) => `${linkTo(file, hit.index)}: ${hit[0].trim()}: ${advice}`,
  )
}

/** Fails with each message on its own line; a diff would omit some. */
export function assertNone(messages: readonly string[]): void {
  if (messages.length > 0) assert.fail(`\n${messages.join('\n')}\n`)
}

interface SourcePiece {
  readonly kind: 'code' | 'comment' | 'quoted'
  readonly part: string
}

/**
 * Splits TypeScript into code, comments and quoted text.
 *
 * Not a parser: the preceding code tells whether a slash divides or opens a regular expression, which suffices for formatted
 * code.
 */
function* piecesOf(text: string): Generator<SourcePiece> {
  /** Where the code begins that was not yielded yet. */
  let unsaid = 0
  let at = 0
  let before = ''
  /** For each open template: the number of open braces in the expression being read. */
  const templates: number[] = []

  while (at < text.length) {
    const first = text[at]!
    const inTemplate = templates.at(-1)
    const comment = first === '/' ? lengthAt(COMMENT, text, at) : 0
    const quoted = QUOTES.test(first)
      ? lengthAt(STRING, text, at)
      : first === '/' && comment === 0 && SLASH_OPENS_REGEX.test(before)
        ? lengthAt(REGEX, text, at)
        : 0

    if (comment > 0) {
      yield { kind: 'code', part: text.slice(unsaid, at) }
      yield { kind: 'comment', part: text.slice(at, at + comment) }
      unsaid = at += comment
    } else if (quoted > 0) {
      yield { kind: 'code', part: text.slice(unsaid, at + 1) }
      yield { kind: 'quoted', part: text.slice(at + 1, at + quoted - 1) }
      unsaid = at + quoted - 1
      at += quoted
      before = '"'
    } else if (first === '`' || (first === '}' && inTemplate === 0)) {
      const length = lengthAt(IN_TEMPLATE, text, at + 1)
      yield { kind: 'code', part: text.slice(unsaid, at + 1) }
      yield { kind: 'quoted', part: text.slice(at + 1, at + 1 + length) }
      unsaid = at + 1 + length
      const end = text.startsWith('${', unsaid) ? '${' : '`'
      at = unsaid + end.length
      if (first === '`' && end === '${') templates.push(0)
      if (first === '}' && end === '`') templates.pop()
      before = end === '`' ? '"' : '{'
    } else {
      const part = text.slice(at, at + lengthAt(WORD, text, at))
      if (inTemplate !== undefined && part === '{') templates.push(templates.pop()! + 1)
      if (inTemplate !== undefined && part === '}') templates.push(templates.pop()! - 1)
      at += part.length
      if (part.trim() !== '') before = part
    }
  }
  yield { kind: 'code', part: text.slice(unsaid) }
}

const QUOTES = /['"]/
const COMMENT = /\/\/[^\n]*|\/\*[^]*?\*\//y
const STRING = /'(?:\\[^]|[^\\'\n])*'|"(?:\\[^]|[^\\"\n])*"/y
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y
const IN_TEMPLATE = /(?:\\[^]|\$(?!\{)|[^\\`$])*/y
const WORD = /[\w$]+|\s+|[^]/y

/** Returns the length of what the sticky `pattern` matches at a position; 0 if it matches nothing there. */
function lengthAt(pattern: RegExp, text: string, position: number): number {
  pattern.lastIndex = position
  return pattern.test(text) ? pattern.lastIndex - position : 0
}

const SLASH_OPENS_REGEX =
  /^(?:|[(,=:[!&|?{};+\-*%<>~^]|return|typeof|case|in|of|yield|await|throw)$/

function blank(part: string): string {
  if (!part.includes('\n')) return ' '.repeat(part.length)
  return part.replaceAll(/[^\n]+/g, (it) => ' '.repeat(it.length))
}

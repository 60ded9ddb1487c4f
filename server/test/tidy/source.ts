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
export function sourceFiles(): SourceFile[] {
  return globSync('{src,test,bench,build,crash}/**/*.ts', { cwd: SERVER })
    .filter((it) => !it.endsWith('.d.ts'))
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
  return /\.(test|contract)\.ts$/.test(file) || file.startsWith('test/')
}

/** Returns a location in the format that editors and terminals link: `server/src/a.ts:12`. */
export function linkTo(file: SourceFile, position: number): string {
  return `server/${file.path}:${file.text.slice(0, position).split('\n').length}`
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
  let from = 0
  let before = ''
  /** For each open template: the number of open braces in the expression being read. */
  const templates: number[] = []

  while (from < text.length) {
    const rest = text.slice(from)
    const inTemplate = templates.at(-1)
    const comment = /^(?:\/\/[^\n]*|\/\*[^]*?\*\/)/.exec(rest)
    const string = /^(?:'(?:\\[^]|[^\\'\n])*'|"(?:\\[^]|[^\\"\n])*")/.exec(rest)
    const regex =
      SLASH_OPENS_REGEX.test(before) && /^\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//.exec(rest)

    if (comment) {
      yield { kind: 'comment', part: comment[0] }
      from += comment[0].length
    } else if (string || regex) {
      const [whole] = (string || regex) as RegExpExecArray
      yield { kind: 'code', part: whole[0]! }
      yield { kind: 'quoted', part: whole.slice(1, -1) }
      yield { kind: 'code', part: whole.at(-1)! }
      from += whole.length
      before = '"'
    } else if (rest[0] === '`' || (rest[0] === '}' && inTemplate === 0)) {
      const [quoted] = /^(?:\\[^]|\$(?!\{)|[^\\`$])*/.exec(rest.slice(1))!
      const end = rest.slice(1 + quoted.length).startsWith('${') ? '${' : '`'
      yield { kind: 'code', part: rest[0] }
      yield { kind: 'quoted', part: quoted }
      yield { kind: 'code', part: rest.slice(1 + quoted.length, 1 + quoted.length + end.length) }
      from += 1 + quoted.length + end.length
      if (rest[0] === '`' && end === '${') templates.push(0)
      if (rest[0] === '}' && end === '`') templates.pop()
      before = end === '`' ? '"' : '{'
    } else {
      const [part] = /^(?:[\w$]+|\s+|[^])/.exec(rest)!
      if (inTemplate !== undefined && part === '{') templates.push(templates.pop()! + 1)
      if (inTemplate !== undefined && part === '}') templates.push(templates.pop()! - 1)
      yield { kind: 'code', part }
      from += part.length
      if (part.trim() !== '') before = part
    }
  }
}

const SLASH_OPENS_REGEX =
  /^(?:|[(,=:[!&|?{};+\-*%<>~^]|return|typeof|case|in|of|yield|await|throw)$/

function blank(part: string): string {
  return part.replaceAll(/[^\n]/g, ' ')
}

/**
 * `npm run words --workspace server -- [CHECKOUT]`: counts private words in a checkout, this one unless given, so that two can
 * be compared: uses in identifiers, comments and documents, the length of the glossary, comments at the top of a file
 * that begin with "What", and names of types declared more than once.
 */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { sourceFile } from './source.ts'
import { declarationsOf, RETIRED_WORDS } from './words.ts'

const [, , checkout = path.resolve(import.meta.dirname, '../../..')] = process.argv

/** Private words, and turns of phrase that read as translated, in comments and documents. */
const IN_PROSE =
  /\b(?:twins?|lanes?|passages?|doorkeeper|doors?|shelf|shelves|crowds?|lent|loans?|borrowers?|askers?|givers?|insiders?|holes?|mentions?|forgetful|wishes|whereto|rehears\w+|disown\w*|serials?|verbs?|nouns?|whoever|nobody|somebody|told|mend(?:s|ed)?|behind|the record)\b/gi

const documents = globSync(['*.md', 'docs/*.md', 'docs/operate/*.md', 'changes/*.md'], {
  cwd: checkout,
})
const sources = globSync('server/{src,test,bench,build,crash}/**/*.ts', { cwd: checkout })
  .filter((it) => !it.includes('/tidy/words'))
  .map((it) => sourceFile(it.replace(/^server\//, ''), read(it)))

const identifiers = RETIRED_WORDS.map(({ example, was }) => ({
  example,
  uses: sources.reduce((sum, it) => sum + count(it.code, was), 0),
}))
const declarations = sources.flatMap(declarationsOf)
const glossary = /## Glossary\n([^]*?)(?=\n## |$)/.exec(read('ARCHITECTURE.md'))?.[1] ?? ''

for (const { example, uses } of identifiers.filter((it) => it.uses > 0)) print(`  ${example}`, uses)
print(
  'identifiers that are private words',
  identifiers.reduce((sum, it) => sum + it.uses, 0),
)
print(
  'in comments',
  sources.reduce((sum, it) => sum + count(it.comments, IN_PROSE), 0),
)
print(
  'in documents',
  documents.reduce((sum, it) => sum + count(read(it), IN_PROSE), 0),
)
print('rows of the glossary', Math.max(0, count(glossary, /^\|/gm) - 2))
print('files that open with "What"', sources.filter((it) => opensWithWhat(it.text)).length)
print('type names declared more than once', repeated(declarations))

function read(file: string): string {
  return readFileSync(path.join(checkout, file), 'utf8')
}

function count(text: string, pattern: RegExp): number {
  return Array.from(text.matchAll(pattern)).length
}

function opensWithWhat(text: string): boolean {
  return /^\s*(?:import [^\n]*\n|\n)*\/\*\*\s*(?:\*\s*)?What\b/.test(text)
}

function repeated(names: readonly string[]): number {
  const seen = new Map<string, number>()
  for (const it of names) seen.set(it, (seen.get(it) ?? 0) + 1)
  return Array.from(seen.values()).filter((it) => it > 1).length
}

function print(label: string, value: number): void {
  process.stdout.write(`${String(value).padStart(6)}  ${label}\n`)
}

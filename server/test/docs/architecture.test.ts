import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { test } from 'node:test'
import { documents, readDocument } from '../tidy/docs.ts'
import { assertNone, PROJECT } from '../tidy/source.ts'

test('every file and folder of the source that a document names is there', () => {
  const files = globSync(
    [
      'server/{bin,bench,build,src,test}/**/*.{cjs,json,sql,ts}',
      'fields/{*.ts,{src,test}/**/*.{css,ts}}',
      'reactor-modules/*.json',
    ],
    { cwd: PROJECT },
  )
  const exists = (name: string): boolean =>
    name.endsWith('/')
      ? files.some((it) => `/${it}`.includes(`/${name}`))
      : files.some((it) => `/${it}`.endsWith(`/${name}`))
  let seen = 0
  const missing = documents()
    // Records say what was, and are not rewritten.
    .filter((document) => !document.startsWith('docs/decisions/'))
    .flatMap((document) =>
      [...readDocument(document, 'a page').matchAll(/`([\w/.-]+(?:\.ts|\/))`/g)]
        .map(([, name]) => name!)
        .filter((name) => !/^[/.]/.test(name))
        .filter((name) => (seen++, !exists(name)))
        .map((name) => `${document}: there is no ${name} (any more)`),
    )
  assert.ok(seen > 40, `it saw ${seen} names`)
  assertNone(missing)
})

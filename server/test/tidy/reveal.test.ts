import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertNone, findings, isTest, sourceFile, sourceFiles, type SourceFile } from './source.ts'

/**
 * The files that handle plaintext, each with the reason. This list is the plaintext audit: a reviewer of secrets must read
 * every file in it.
 */
const REVEALS: Readonly<Record<string, string>> = {
  'src/request/idempotency.ts': 'it opens answers to be replayed',
  'src/definitions/secret-configuration.ts':
    'it joins the secrets of a configuration to be sealed, or run on',
  'src/adapters/jail/guest-process.ts': 'it hands reactors what they run on',
  'src/cli/reactor-run.ts': 'it prints what the code returned to whoever wrote it',
  'src/adapters/jail/self-test.ts': 'it reads what its own code returned',
  'src/adapters/local-keyring/data-key.ts': 'it encrypts',
  'src/adapters/local-keyring/local-tenant-keys.ts': 'it computes fingerprints and indexes',
  'src/proxy/configured/sealed-proxy-configuration.ts':
    'it opens what configured proxies do, their keys with it',
  'src/reactors/callbacks/secrets.ts': 'it opens and seals what callbacks are signed with',
  'src/reactors/callbacks/signature.ts': 'it signs callbacks',
  'src/reactors/callbacks/wire.ts': 'it shows the secret to whoever is to verify callbacks',
  'src/reactors/invocation/result.ts': 'it reads what code returned',
  'src/reactors/invocation/run-reactor.ts': 'it takes the ephemeral key out of messages',
  'src/reactors/jobs/job-state.ts': 'it opens what was asked of jobs, and what came of them',
  'src/reactors/sealed-reactor-configuration.ts': 'it opens the code and configuration of reactors',
  'src/tokens/derive.ts': 'it evaluates expressions over the data of a token being made',
  'src/tokens/patch.ts': 'it merges new data into the old',
  'src/tokens/render-built-token.ts': 'it shows a creator what it created, when a rule reveals it',
  'src/tokens/sealing.ts': 'it turns data into envelopes and back',
  'src/tokens/show.ts': 'it shows data as far as a reader may see it',
}

test('plaintext is revealed only in the files listed for it', () => {
  const files = sourceFiles()
  assert.ok(files.length > 20, `it saw ${files.length} files`)
  assertNone(wrongReveals(files, REVEALS))
})

describe('wrongReveals()', () => {
  const reveals = sourceFile('src/tokens/a.ts', 'data\n  .reveal()')

  test('catches a file that is not listed', () => {
    const [message] = wrongReveals([reveals], {})
    assert.match(message!, /^server\/src\/tokens\/a\.ts:2: \.reveal: /)
  })

  test('catches a method taken without being called', () => {
    const file = sourceFile('src/tokens/a.ts', 'const f = data.reveal')
    assert.equal(wrongReveals([file], {}).length, 1)
  })

  test('lets pass a listed file, tests, comments and strings', () => {
    const listed = { 'src/tokens/a.ts': 'it evaluates masks' }
    const others = [
      sourceFile('src/tokens/a.test.ts', 'data.reveal()'),
      sourceFile('src/tokens/b.ts', `'reveal' // data.reveal()`),
    ]
    assert.deepEqual(wrongReveals([reveals, ...others], listed), [])
  })

  test('catches a file that is listed and reveals nothing', () => {
    const listed = { 'src/tokens/a.ts': 'it evaluates masks', 'src/tokens/b.ts': 'no more' }
    const [message] = wrongReveals([reveals, sourceFile('src/tokens/b.ts', '')], listed)
    assert.match(message!, /^server\/src\/tokens\/b\.ts: /)
  })
})

/** Returns each use of plaintext in a file that is not listed, and each listed file without any. */
function wrongReveals(
  files: readonly SourceFile[],
  listed: Readonly<Record<string, string>>,
): string[] {
  const advice = 'hand the Sensitive on, or list the file in reveal.test.ts with its reason'
  const found = files
    .filter((it) => it.path.startsWith('src/') && !isTest(it.path))
    .map((file) => ({ file, hits: findings(file, 'code', /\.\s*reveal\b/g, advice) }))
  const revealing = new Set(found.filter((it) => it.hits.length > 0).map((it) => it.file.path))
  return [
    ...found.flatMap(({ file, hits }) => (file.path in listed ? [] : hits)),
    ...Object.keys(listed)
      .filter((it) => !revealing.has(it))
      .map((it) => `server/${it}: reveals nothing: remove it from the list in reveal.test.ts`),
  ]
}

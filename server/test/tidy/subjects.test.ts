import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { lacksPrograms } from '../kit/programs.ts'
import { temporaryFolder } from '../kit/running-vault.ts'

const SCRIPT = path.resolve(import.meta.dirname, '../../../.ci/check-subjects')

describe('.ci/check-subjects', { skip: lacksPrograms('git') }, () => {
  test('accepts areas and at most 72 characters, and exempts merges', (t) => {
    const repository = begin(t)
    repository.commit('tokens: count a duplicate once')
    repository.commit('http, proxy: refuse what two readers could read differently')
    repository.commit(`docs: ${'é'.repeat(66)}`)
    repository.git('checkout', '-qb', 'side', 'HEAD~1')
    repository.commit('test: run beside the others')
    repository.git('merge', '-q', '--no-ff', '-m', 'Merge branch', 'main')
    assert.deepEqual(repository.check(), { status: 0, lines: [] })
  })

  const wrong: [subject: string, advice: RegExp][] = [
    [`docs: ${'é'.repeat(67)}`, /: shorten it from 73 to 72 characters$/],
    ['Count a duplicate once', /: begin with an area, as in /],
    ['tokens: count a duplicate once.', /: drop the period at the end$/],
  ]
  for (const [subject, advice] of wrong) {
    test(`rejects "${subject}"`, (t) => {
      const repository = begin(t)
      repository.commit(subject)
      repository.commit('tokens: count a duplicate once')
      const { status, lines } = repository.check()
      assert.equal(status, 1)
      assert.equal(lines.length, 1)
      assert.match(lines[0]!, advice)
      assert.ok(lines[0]!.includes(subject))
    })
  }

  test('does not look at commits up to the one in .ci/subjects-since', (t) => {
    const repository = begin(t)
    repository.commit('A subject from before the rule.')
    repository.since()
    repository.commit('tokens: count a duplicate once')
    assert.deepEqual(repository.check(), { status: 0, lines: [] })
  })

  test('says that it checks nothing in a shallow clone', (t) => {
    const repository = begin(t)
    repository.commit('Wrong')
    repository.commit('Wrong too')
    const shallow = path.join(temporaryFolder(t), 'clone')
    execFileSync('git', ['clone', '-q', '--depth=1', `file://${repository.folder}`, shallow])
    repository.install(shallow)
    const { status, lines } = check(shallow)
    assert.equal(status, 0)
    assert.deepEqual(lines, ['Commit subjects were not checked: this clone is shallow.'])
  })

  test('says so when .ci/subjects-since names a commit of another history', (t) => {
    const repository = begin(t)
    writeFileSync(path.join(repository.folder, '.ci/subjects-since'), `${'0'.repeat(40)}\n`)
    const { status, lines } = repository.check()
    assert.equal(status, 1)
    assert.match(lines[0]!, /is not an ancestor of HEAD: name one that is\.$/)
  })
})

/** Creates a repository with one commit, after which subjects are checked. */
function begin(t: TestContext) {
  const folder = temporaryFolder(t)
  const git = (...options: string[]): string =>
    execFileSync('git', ['-C', folder, ...options], { encoding: 'utf8', env: ENVIRONMENT })
  const since = (): void => {
    writeFileSync(path.join(folder, '.ci/subjects-since'), git('rev-parse', 'HEAD'))
  }
  const install = (into: string): void => {
    mkdirSync(path.join(into, '.ci'), { recursive: true })
    cpSync(SCRIPT, path.join(into, '.ci/check-subjects'))
    if (into !== folder) {
      cpSync(path.join(folder, '.ci/subjects-since'), path.join(into, '.ci/subjects-since'))
    }
  }
  const commit = (subject: string): void => {
    git('commit', '-q', '--allow-empty', '-m', subject)
  }
  git('init', '-q', '-b', 'main')
  commit('Initial commit')
  install(folder)
  since()
  return { folder, git, since, install, commit, check: () => check(folder) }
}

function check(folder: string): { status: number | null; lines: string[] } {
  const { status, stdout, stderr } = spawnSync(path.join(folder, '.ci/check-subjects'), {
    encoding: 'utf8',
    env: ENVIRONMENT,
  })
  assert.equal(stderr, '')
  return { status, lines: stdout.split('\n').filter((it) => it !== '') }
}

const ENVIRONMENT = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
}

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareEnvironment } from '../../../../test/kit/environment.ts'
import { startCluster } from '../../../../test/kit/postgres/cluster.ts'
import { atTheEnd, query } from '../../../../test/kit/postgres/test-database.ts'
import { lacksPrograms } from '../../../../test/kit/programs.ts'
import { connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { passwordFor, type PasswordTarget } from './password-file.ts'

const skip = lacksPrograms('mkfifo')
const folder = mkdtempSync(join(tmpdir(), 'symbolon-passwords-'))
after(() => rmSync(folder, { recursive: true }))

function fileOf(text: string, mode = 0o600): string {
  const file = join(mkdtempSync(join(folder, 'p-')), 'pgpass')
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

/** Connects to the address given, in an environment of its own. */
const CONNECT = `
  const { connectedTo } = await import(${JSON.stringify(new URL('./connection.ts', import.meta.url))})
  const { connectionSettings } = await import(${JSON.stringify(new URL('./connection-settings.ts', import.meta.url))})
  await (await connectedTo(connectionSettings(process.argv[1]))).end()
  console.log('connected')
`

const TARGET: PasswordTarget = { host: 'db1', port: 5432, database: 'vault', user: 'symbolon' }

describe('passwordFor()', () => {
  const cases: [lines: string, password: string, target?: Partial<PasswordTarget>][] = [
    ['db1:5432:vault:symbolon:hunter2', 'hunter2'],
    ['# a comment\n\nnot a line\r\ndb1:5432:vault:symbolon:hunter2\r\n', 'hunter2'],
    ['*:*:*:*:any', 'any'],
    ['db2:*:*:*:other\ndb1:*:*:*:first\n*:*:*:*:second', 'first'],
    ['db1:5433:*:*:port\ndb1:*:other:*:database\ndb1:*:*:other:user\n*:*:*:*:mine', 'mine'],
    ['db1:*:*:*:with\\:colon and \\\\ backslash', 'with:colon and \\ backslash'],
    ['db1:*:*:*:ends\\', 'ends\\'],
    ['db1:*:*:*:hunter2: a comment', 'hunter2'],
    ['\uFEFFdb1:*:*:*:first\n*:*:*:*:second', 'first'],
    ['\\*:*:*:*:star\n*:*:*:*:any', 'any'],
    ['*:*:*:\\*:star', 'star', { user: '*' }],
    ['\\:\\:1:*:a\\:b:c\\\\d:v6', 'v6', { host: '::1', database: 'a:b', user: 'c\\d' }],
    ['localhost:*:*:*:socket', 'socket', { host: '/run/postgresql' }],
    ['/run/postgresql:*:*:*:folder', 'folder', { host: '/run/postgresql' }],
  ]
  for (const [lines, password, target] of cases) {
    test(`finds ${password} in ${JSON.stringify(lines)}`, async () => {
      assert.equal(await passwordFor({ ...TARGET, ...target }, fileOf(lines)), password)
    })
  }

  test('refuses when no line matches, and names what is missing', async () => {
    for (const lines of ['', 'db2:*:*:*:x', '#db1:*:*:*:x', 'localhost:*:*:*:x']) {
      const file = fileOf(lines)
      const message = /for db1:5432:vault:symbolon, .* none: .*'.*pgpass' has no line for it$/
      await assert.rejects(passwordFor(TARGET, file), message, lines)
    }
    await assert.rejects(passwordFor(TARGET, undefined), /there is none: PGPASSFILE is not set$/)
  })

  test('refuses an empty password, whatever lines come after it', async () => {
    for (const lines of ['db1:*:*:*:\n*:*:*:*:other', 'db1:*:*:*::a comment']) {
      const message = /its line in the password file '.*pgpass' has an empty password$/
      await assert.rejects(passwordFor(TARGET, fileOf(lines)), message, lines)
    }
  })

  test('refuses a file that other users have access to, and shows nothing of it', async () => {
    for (const mode of [0o640, 0o604, 0o660, 0o666, 0o610]) {
      const file = fileOf('*:*:*:*:hunter2', mode)
      await assert.rejects(
        passwordFor(TARGET, file),
        ({ message }: Error) => /chmod 600/.test(message) && !/hunter2/.test(message),
      )
    }
    assert.equal(await passwordFor(TARGET, fileOf('*:*:*:*:hunter2', 0o400)), 'hunter2')
  })

  test('refuses what is no file, and a file that does not exist', async () => {
    const other = join(folder, 'a folder')
    mkdirSync(other, { mode: 0o700 })
    await assert.rejects(passwordFor(TARGET, other), /cannot be used: it is no regular file/)
    await assert.rejects(passwordFor(TARGET, '/no/such'), /'\/no\/such' cannot be used: ENOENT/)
  })

  test(
    'refuses a named pipe without waiting for its writer',
    { skip, timeout: 60_000 },
    async (t) => {
      const pipe = join(folder, 'a pipe')
      execFileSync('mkfifo', ['-m', '600', pipe])
      // Lets go of a reader that waits, so that the process can end.
      t.after(() => closeSync(openSync(pipe, constants.O_RDWR)))
      await assert.rejects(passwordFor(TARGET, pipe), /cannot be used: it is no regular file/)
    },
  )
})

describe('a database that asks for a password', async () => {
  const cluster = await startCluster()
  atTheEnd(() => cluster.stop())
  writeFileSync(
    join(cluster.folder, 'data/pg_hba.conf'),
    'local all postgres trust\nlocal all all scram-sha-256\n',
  )
  await query(cluster.url, "CREATE ROLE symbolon LOGIN PASSWORD 'hunter2'")

  const at = (passfile: string | null, user = 'symbolon') => {
    const url = new URL(cluster.url)
    url.username = user
    if (passfile !== null) url.searchParams.set('passfile', passfile)
    return url.href
  }
  const connect = async (url: string): Promise<void> => {
    await (await connectedTo(connectionSettings(url))).end()
  }
  await query(cluster.url, 'SELECT pg_reload_conf()')
  // It takes effect a moment later.
  const asks = async (): Promise<boolean> =>
    await connect(at(null)).then(
      () => false,
      () => true,
    )
  while (!(await asks())) await sleep(5)
  const failure = async (url: string): Promise<string> => {
    const error = await connect(url).then(
      () => assert.fail('It connected'),
      (it: Error) => it,
    )
    return (error.cause as Error).message
  }

  test('gets the one of the file, which may change between two connections', async () => {
    await assert.doesNotReject(connect(at(fileOf('localhost:5432:*:symbolon:hunter2'))))
    const file = fileOf('*:*:*:*:wrong')
    assert.match(await failure(at(file)), /password authentication failed/)
    writeFileSync(file, '*:*:*:*:hunter2')
    await connect(at(file))
  })

  test('gets the one of the address before that of the file', async () => {
    await connect(at(fileOf('*:*:*:*:wrong'), 'symbolon').replace('symbolon@', 'symbolon:hunter2@'))
  })

  test('gets the one of PGPASSWORD before that of the file', () => {
    const passwordFile = fileOf('*:*:*:*:wrong')
    for (const [password, printed] of [
      ['hunter2', 'connected\n'],
      ['hunter3', ''],
    ] as const) {
      const args = ['--input-type=module', '-e', CONNECT, at(passwordFile)]
      const env = { ...bareEnvironment(), PGPASSWORD: password }
      const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
      assert.equal(stdout, printed, stderr)
    }
  })

  test('is refused, with a sentence that says why, when there is none', async () => {
    assert.match(await failure(at(null)), /asks for a password for .*PGPASSFILE is not set/)
    assert.match(await failure(at(fileOf('db:*:*:*:x'))), /has no line for it/)
    assert.match(await failure(at(fileOf('*:*:*:*:hunter2', 0o644))), /chmod 600/)
    assert.match(await failure(at('/no/such')), /'\/no\/such' cannot be used/)
  })

  test('does not read the file unless the database asks', async () => {
    await connect(at('/no/such', 'postgres'))
  })
})

/**
 * The contract with programs that start this one: commands, variables, flags, output, signals.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SHUTDOWN_MS_MAX } from '../../src/base/limits.ts'
import { readConfig } from '../../src/config.ts'
import { contentOf, preparedVault } from '../kit/prepared-vault.ts'
import { lacksIpv6 } from '../kit/programs.ts'
import {
  filesIn,
  runProgram,
  runSymbolon,
  startVault,
  temporaryFolder,
} from '../kit/running-vault.ts'

const TENANT = '019ca945-0a00-4a01-87a1-c9505f5b7d8d'
const PACKAGE = fileURLToPath(new URL('../../package.json', import.meta.url))

describe('symbolon init', () => {
  test('prints one JSON object with a tenant, an application and its key, and nothing else', async (t) => {
    const folder = temporaryFolder(t)
    const { status, out, err } = await runProgram(['init', '--json', '--data-dir', folder])
    assert.equal(status, 0, err)
    const printed = JSON.parse(out) as Record<string, string>
    assert.deepEqual(Object.keys(printed), ['tenant_id', 'application_id', 'api_key'])
    assert.match(printed['api_key']!, /^key_local_mgt_\w{38}$/)
    assert.equal(err, '')
  })

  test('makes the data folder where it is run, unless another is configured', async (t) => {
    const cwd = temporaryFolder(t)
    assert.equal((await runProgram(['init'], {}, cwd)).status, 0)
    assert.deepEqual(readdirSync(cwd), ['data'])
  })

  test('refuses a name that exists and changes nothing, and adds a tenant for each new one', async (t) => {
    const SYMBOLON_DATA_DIR = temporaryFolder(t)
    const run = (...args: string[]) =>
      runSymbolon(['init', '--json', ...args], { SYMBOLON_DATA_DIR })
    const first = await run()
    const again = await run()
    assert.equal(again.status, 1)
    assert.equal(again.out, '')
    assert.match(again.err, /^symbolon init: .*"default".*\n$/)
    const second = await run('--name', 'second', '--plan', 'standard')
    assert.equal(second.status, 0, second.err)
    assert.notEqual(JSON.parse(second.out).tenant_id, JSON.parse(first.out).tenant_id)

    const vault = await startVault(SYMBOLON_DATA_DIR)
    t.after(() => vault.stop())
    assert.doesNotMatch(vault.greeting, /api_key/, 'there are tenants: no other is made')
    for (const { out } of [first, second]) {
      const key = JSON.parse(out).api_key as string
      const reply = await fetch(`${vault.url}/applications/key`, { headers: { 'BT-API-KEY': key } })
      assert.equal(reply.status, 200)
    }
  })

  test('is refused while a server has the data folder, in one sentence', async (t) => {
    const folder = temporaryFolder(t)
    const vault = await startVault(folder)
    t.after(() => vault.stop())
    const { status, out, err } = await runProgram(['init', '--data-dir', folder, '--name', 'other'])
    assert.equal(status, 1)
    assert.equal(out, '')
    assert.match(err, /^symbolon init: .*another process is using it.*\n$/)
  })

  test('names what a wrong plan may be', async (t) => {
    const folder = temporaryFolder(t)
    const { status, err } = await runSymbolon(['init', '--data-dir', folder, '--plan', 'gold'])
    assert.equal(status, 1)
    assert.equal(err, "symbolon init: --plan is 'gold', but must be one of enterprise, standard.\n")
    assert.deepEqual(readdirSync(folder), [])
  })
})

describe('symbolon serve', { concurrency: 2 }, () => {
  test('makes the data folder, the root key and a tenant on the first start, and shows the key once', async (t) => {
    const folder = join(temporaryFolder(t), 'deeper', 'data')
    const first = await startVault(folder)
    t.after(() => first.stop())
    const key = /^\s+api_key\s+(\S+)$/m.exec(first.greeting)![1]!
    assert.equal(statSync(join(folder, 'root.key')).mode & 0o777, 0o600)
    assert.equal(statSync(join(folder, 'root.key')).size, 32)
    await first.stop()

    const second = await startVault(folder)
    t.after(() => second.stop())
    t.after(() => second.stop())
    assert.doesNotMatch(second.greeting, /api_key/)
    const reply = await fetch(`${second.url}/applications/key`, { headers: { 'BT-API-KEY': key } })
    assert.equal(reply.status, 200)
    for (const file of filesIn(folder)) {
      const bytes = readFileSync(file, 'latin1')
      assert.ok(!bytes.includes(key), `the key lies in ${file}`)
    }
  })

  test(
    'listens on both loopback families and answers for its health without a key',
    { skip: lacksIpv6() },
    async (t) => {
      const vault = await startVault(temporaryFolder(t))
      t.after(() => vault.stop())
      const { port } = new URL(vault.url)
      for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
        for (const path of ['/health/live', '/health/ready']) {
          const reply = await fetch(`http://${host}:${port}${path}`)
          assert.equal(reply.status, 200)
          assert.equal(((await reply.json()) as { status: string }).status, 'ok')
        }
      }
    },
  )

  test('a flag wins over its variable, and a bad value stops the start in one sentence', async (t) => {
    const folder = temporaryFolder(t)
    const bad: [args: string[], variables: Record<string, string>, said: string][] = [
      [
        [],
        { SYMBOLON_PORT: '70000' },
        "SYMBOLON_PORT is '70000', but must be a port from 0 to 65535.",
      ],
      [
        ['--port', 'x'],
        { SYMBOLON_PORT: '0' },
        "--port is 'x', but must be a port from 0 to 65535.",
      ],
      [
        [],
        { SYMBOLON_EXTRA_CA_FILE: '/dev/null' },
        "SYMBOLON_EXTRA_CA_FILE is '/dev/null', but must be a PEM file of certificates: it is no regular file.",
      ],
      [
        ['--extra-ca-file', PACKAGE],
        {},
        `--extra-ca-file is '${PACKAGE}', but must be a PEM file of certificates: there is none in it.`,
      ],
      [
        ['--extra-ca-file', '/no/such/file'],
        {},
        "--extra-ca-file is '/no/such/file', but must be a PEM file of certificates: it cannot be read (ENOENT).",
      ],
      [['--port', '-1'], {}, "--port is '-1', but must be a port from 0 to 65535."],
      [
        ['--port', '4433'],
        { SYMBOLON_METRICS_PORT: '4433' },
        'SYMBOLON_METRICS_PORT is 4433, which is where the service itself listens: give it another port.',
      ],
      [
        ['--data-dir', '--port', '0'],
        {},
        '--data-dir takes a value, and one that begins with a dash is written --data-dir=-value.',
      ],
    ]
    for (const [n, [args, variables, said]] of bad.entries()) {
      const all = { SYMBOLON_DATA_DIR: folder, ...variables }
      const run = n < 2 ? runProgram : runSymbolon
      const { status, out, err } = await run(['serve', ...args], all)
      assert.equal(status, 1)
      assert.equal(out, '')
      assert.equal(err, `symbolon serve: ${said}\n`)
    }
    assert.deepEqual(readdirSync(folder), [], 'nothing was made before the settings were read')
    // The start prints what reading the settings throws.
    const flawsByTenant: [value: string, flaw: string][] = [
      [
        '10.1.0.0/16',
        " (see '10.1.0.0/16', which has no tenant: write TENANT_ID= before each destination)",
      ],
      [
        `${TENANT}=10.1.0.0/16,10.2.0.0/16`,
        " (see '10.2.0.0/16', which has no tenant: write TENANT_ID= before each destination)",
      ],
      [
        `${TENANT}0`,
        ` (see '${TENANT}0', which has no tenant: write TENANT_ID= before each destination)`,
      ],
      ['first=a.example', " (see 'first=a.example', whose tenant is not the id of one, a UUID)"],
      [
        `${TENANT}=`,
        ` (see '${TENANT}=', which has no destination: remove it, or add one after the equals sign)`,
      ],
      [`${TENANT}=10.1.2.3/16`, ` (see '${TENANT}=10.1.2.3/16', whose destination is invalid)`],
      [',', ''],
    ]
    const values: [variables: Record<string, string>, said: string][] = [
      [
        { SYMBOLON_TOKEN_PRIVACY: 'yes' },
        "SYMBOLON_TOKEN_PRIVACY is 'yes', but must be on or off.",
      ],
      [
        { SYMBOLON_EGRESS_ALLOW: 'ok.example, 10.1.2.3/8,*.b.example:99999' },
        "SYMBOLON_EGRESS_ALLOW is 'ok.example, 10.1.2.3/8,*.b.example:99999' (see '10.1.2.3/8', '*.b.example:99999'), but must be a comma-separated list of addresses, CIDRs and host names, each with an optional port, such as 127.0.0.1:9001, 10.0.0.0/8 and *.internal.example.",
      ],
      [
        { SYMBOLON_EGRESS_ALLOW: `${TENANT}=10.1.0.0/16` },
        `SYMBOLON_EGRESS_ALLOW is '${TENANT}=10.1.0.0/16' (see '${TENANT}=10.1.0.0/16', which belongs in SYMBOLON_EGRESS_ALLOW_BY_TENANT), but must be a comma-separated list of addresses, CIDRs and host names, each with an optional port, such as 127.0.0.1:9001, 10.0.0.0/8 and *.internal.example.`,
      ],
      ...flawsByTenant.map(([value, flaw]): [Record<string, string>, string] => [
        { SYMBOLON_EGRESS_ALLOW_BY_TENANT: value },
        `SYMBOLON_EGRESS_ALLOW_BY_TENANT is '${value}'${flaw}, but must be a comma-separated list of TENANT_ID=DESTINATION, with the tenant before each destination, such as 019ca945-0a00-4a01-87a1-c9505f5b7d8d=10.1.0.0/16.`,
      ]),
      [
        { SYMBOLON_PUBLIC_URL: 'https://vault.example/path' },
        "SYMBOLON_PUBLIC_URL is 'https://vault.example/path', but must be unset, or an http or https URL without a path such as https://vault.example.",
      ],
      [
        { SYMBOLON_TRUSTED_PROXIES: '10.0.0.5, 10.1.2.3/8,proxy.example' },
        "SYMBOLON_TRUSTED_PROXIES is '10.0.0.5, 10.1.2.3/8,proxy.example' (see '10.1.2.3/8', 'proxy.example'), but must be a comma-separated list of addresses and CIDRs such as 10.0.0.5 and 10.1.0.0/16.",
      ],
      [
        { SYMBOLON_REACTOR_PACKAGES: 'lodash,@a/b, ../c,d/e' },
        "SYMBOLON_REACTOR_PACKAGES is 'lodash,@a/b, ../c,d/e' (see '../c', 'd/e'), but must be a comma-separated list of names of packages such as stripe and @adyen/api-library.",
      ],
    ]
    for (const [variables, message] of values) {
      assert.throws(() => readConfig({}, variables), { message })
    }
  })

  test('makes nothing where it cannot listen, and says so', { skip: lacksIpv6() }, async (t) => {
    const taken = createServer().listen(0, '127.0.0.1')
    const onSecond = createServer().listen(0, '::1')
    t.after(() => [taken, onSecond].map((it) => it.close()))
    await Promise.all([once(taken, 'listening'), once(onSecond, 'listening')])
    const port = String((taken.address() as AddressInfo).port)
    const folder = join(temporaryFolder(t), 'data')
    const cases: Record<string, string>[] = [
      { SYMBOLON_PORT: port },
      { SYMBOLON_PORT: String((onSecond.address() as AddressInfo).port) },
      { SYMBOLON_HOST: '127.0.0.1', SYMBOLON_PORT: port },
      { SYMBOLON_HOST: '192.0.2.1' },
      { SYMBOLON_METRICS_HOST: '127.0.0.1', SYMBOLON_METRICS_PORT: port },
    ]
    for (const [n, variables] of cases.entries()) {
      const all = { SYMBOLON_DATA_DIR: folder, ...variables }
      const { status, out, err } = await (n === 0 ? runProgram : runSymbolon)(['serve'], all)
      assert.deepEqual([status, out], [1, ''])
      const [, which] =
        /^symbolon serve: Cannot listen on \S+, port \d+, as (\w+) .* \(.*\)\n$/.exec(err)!
      assert.equal(which!.includes('METRICS'), 'SYMBOLON_METRICS_HOST' in variables)
      assert.equal(existsSync(folder), false)
    }
  })

  test('names the data folder that is a file, and the database that is none', async (t) => {
    const folder = temporaryFolder(t)
    const database = join(folder, 'symbolon.db')
    writeFileSync(
      database,
      'no database, but long enough to be looked at as if it were one'.repeat(20),
    )
    const cases: [args: string[], said: string][] = [
      [
        ['serve', '--port', '0', '--data-dir', database],
        `Cannot use ${database} as the data folder: it is a file`,
      ],
      [
        ['serve', '--port', '0', '--data-dir', folder],
        `Cannot use ${database} (file is not a database)`,
      ],
      [
        ['audit', 'verify', '--data-dir', folder],
        `Cannot use ${database} (file is not a database)`,
      ],
      [['keys', 'rotate', '--data-dir', folder], `Cannot use ${database} (file is not a database)`],
    ]
    for (const [n, [args, said]] of cases.entries()) {
      const { status, out, err } = await (n === 1 ? runProgram : runSymbolon)(args)
      assert.deepEqual([status, out], [1, ''])
      assert.ok(err.endsWith(`: ${said}\n`), err)
    }
  })

  test('makes no tenant in the place of one that was deleted, says so, and init makes one', async (t) => {
    const folder = temporaryFolder(t)
    const first = await startVault(folder)
    t.after(() => first.stop())
    const [, key] = /api_key\s+(\S+)/.exec(first.greeting)!
    const call = async (url: string, method: string, path: string, body?: string) =>
      await fetch(url + path, {
        method,
        headers: { 'bt-api-key': key!, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      })
    const application = JSON.stringify({ name: 'x', type: 'public', permissions: ['token:create'] })
    const made = await call(first.url, 'POST', '/applications', application)
    assert.equal(made.status, 201)
    const gone = await call(first.url, 'DELETE', '/tenants/self')
    assert.equal(gone.status, 204)
    assert.equal((await call(first.url, 'GET', '/permissions')).status, 401)
    assert.equal((await first.stop()).status, 0)

    const second = await startVault(folder)
    t.after(() => second.stop())
    assert.doesNotMatch(second.greeting, /api_key/)
    assert.equal((await call(second.url, 'GET', '/permissions')).status, 401)
    assert.equal((await fetch(`${second.url}/health/ready`)).status, 200)
    const stopped = await second.stop()
    assert.equal(stopped.status, 0)
    assert.match(stopped.out, /no_tenant.*symbolon init/)

    const db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true })
    for (const table of ['applications', 'application_keys', 'tenant_keys', 'tenants']) {
      const row = db.prepare(`SELECT count(*) AS count FROM ${table}`).get()
      assert.equal(row?.count, 0, table)
    }
    db.close()
    const init = await runProgram(['init', '--data-dir', folder])
    assert.equal(init.status, 0, init.err)
  })

  test('refuses another root key than the one the data was sealed under, and changes nothing', async (t) => {
    const { folder } = await preparedVault(t)
    const before = contentOf(folder)
    const other = join(temporaryFolder(t), 'root.key')
    writeFileSync(other, Buffer.alloc(32, 7), { mode: 0o600 })
    const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_ROOT_KEY_FILE: other }
    const { status, err } = await runProgram(['serve', '--port', '0'], variables)
    assert.equal(status, 1)
    assert.match(err, /^symbolon serve: .*root key.*\n$/)
    assert.deepEqual(contentOf(folder), before)
  })

  test('makes no new root key when the one of existing data is missing', async (t) => {
    const { folder } = await preparedVault(t)
    const missing = join(temporaryFolder(t), 'root.key')
    const variables = { SYMBOLON_DATA_DIR: folder, SYMBOLON_ROOT_KEY_FILE: missing }
    const { status, err } = await runSymbolon(['serve', '--port', '0'], variables)
    assert.equal(status, 1)
    assert.ok(err.includes(missing), err)
    assert.ok(!existsSync(missing))
  })

  test('refuses a root key that others may read, and says what to do', async (t) => {
    const { folder } = await preparedVault(t)
    chmodSync(join(folder, 'root.key'), 0o644)
    const { status, err } = await runSymbolon(['serve', '--port', '0', '--data-dir', folder])
    assert.equal(status, 1)
    assert.match(err, /its mode is 0644; run chmod 0400 on it/)
  })

  test('on SIGTERM stops accepting, finishes what is in flight, and exits with 0', async (t) => {
    const vault = await startVault(temporaryFolder(t))
    const key = /^\s+api_key\s+(\S+)$/m.exec(vault.greeting)![1]!
    const { port } = new URL(vault.url)

    // A request that is half sent when the signal comes.
    const body = JSON.stringify({ name: 'late', type: 'private', permissions: ['token:read'] })
    const socket = connect(Number(port), '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.write(
      `POST /applications HTTP/1.1\r\nhost: localhost\r\nbt-api-key: ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    )
    const accepts = (): Promise<boolean> =>
      fetch(`${vault.url}/health/live`).then(
        () => true,
        () => false,
      )
    assert.ok(await accepts())
    const stopped = vault.stop('SIGTERM')
    // From some moment on no new connection is accepted.
    while ((await accepts()) || !vault.printed().includes('"stopping"'));
    socket.write(body.slice(5))
    await closed
    const { status } = await stopped
    assert.match(answer, /^HTTP\/1\.1 201 /)
    assert.equal(status, 0)
  })

  test('exits within ten seconds of SIGTERM even if a client never finishes', async (t) => {
    const vault = await startVault(temporaryFolder(t))
    const socket = connect(Number(new URL(vault.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST /tokenize HTTP/1.1\r\nhost: localhost\r\n')
    await fetch(`${vault.url}/health/live`)
    await vault.stop('SIGTERM')
    // It waits for unfinished requests no longer than this.
    assert.ok(SHUTDOWN_MS_MAX < 10_000)
    socket.destroy()
  })

  test('warns of variables that carry its prefix and mean nothing', async (t) => {
    const vault = await startVault(temporaryFolder(t), { SYMBOLON_COLOUR: '1' })
    await vault.stop()
    assert.match(vault.printed(), /"event":"unknown_variables","variables":\["SYMBOLON_COLOUR"\]/)
  })

  test('is not stopped by the variables of a Kubernetes Service, and logs the ones it ignores', async (t) => {
    const links = {
      SYMBOLON_SERVICE_HOST: '10.0.0.1',
      SYMBOLON_SERVICE_PORT_HTTP: '4400',
      SYMBOLON_PORT_4400_TCP: 'tcp://10.0.0.1:4400',
      SYMBOLON_PORT_4400_TCP_ADDR: '10.0.0.1',
      SYMBOLON_METRICS_PORT: 'tcp://10.0.0.2:9464',
    }
    const vault = await startVault(temporaryFolder(t), links)
    await vault.stop()
    assert.doesNotMatch(vault.printed(), /unknown_variables/)
    const ignored = /"event":"ignored_variables","variables":\["SYMBOLON_METRICS_PORT"\]/
    assert.match(vault.printed(), ignored)
  })

  test('is stopped by a misspelled variable, like every command, before anything is created', async (t) => {
    const cwd = temporaryFolder(t)
    for (const command of ['serve', 'init']) {
      const { status, out, err } = await runProgram([command], { SYMBOLON_DATADIR: '/srv' }, cwd)
      assert.deepEqual([status, out], [1, ''])
      const said = 'if you mean SYMBOLON_DATA_DIR, rename it; otherwise unset it.'
      assert.equal(err, `symbolon ${command}: SYMBOLON_DATADIR is not a setting: ${said}\n`)
    }
    assert.deepEqual(readdirSync(cwd), [])
  })
})

test('symbolon without a command, or with an unknown one, says what there is and exits with 2', async () => {
  const none = await runProgram([])
  assert.equal(none.status, 2)
  assert.match(none.out, /^Usage: symbolon <command>/)
  const unknown = await runSymbolon(['tokenise'])
  assert.equal(unknown.status, 2)
  assert.equal(unknown.err, "There is no command 'tokenise'. Try: symbolon help\n")
  const meant = await runSymbolon(['serve', '--data', 'here'])
  assert.equal(meant.status, 1)
  assert.equal(
    meant.err,
    "symbolon serve: There is no setting '--data'. Did you mean --data-dir? Try: symbolon help\n",
  )
  const misspelled = await runSymbolon(['serve', '--prot', '80'])
  assert.equal(
    misspelled.err,
    "symbolon serve: There is no setting '--prot'. Did you mean --port? Try: symbolon help\n",
  )
  const version = await runSymbolon(['version'])
  assert.match(version.out, /^\d+\.\d+\.\d+\n$/)
})

test('help says what can be set, and --help behind a command says it of that command', async () => {
  const all = await runProgram(['help'])
  assert.equal(all.status, 0)
  assert.match(all.out, /^ {2}--port +The port to listen on\. \[4400\]$/m)
  for (const words of [
    ['keys', 'rotate', '--help'],
    ['keys', 'rotate', '--tenant', 'x', '-h'],
    ['help', 'keys', 'rotate'],
  ]) {
    const one = await runSymbolon(words)
    assert.equal(one.status, 0)
    assert.match(one.out, /^Usage: symbolon keys rotate \[--root\] \[--tenant \.\.\.\]/)
    assert.match(one.out, /^ {2}--data-dir /m)
  }
})

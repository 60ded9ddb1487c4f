/** Settings and machines with problems: doctor reports each, and its remedy works. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { DiskFigures } from '../../src/adapters/system/host-machine.ts'
import type { CheckResult } from '../../src/cli/doctor/run-checks.ts'
import { NIL_ID } from '../../src/base/id.ts'
import { readAuthorities } from '../../src/cli/read-authorities.ts'
import { bareEnvironment } from '../kit/environment.ts'
import { installModules } from '../kit/installed-modules.ts'
import { startHostedVault } from '../kit/hosted-vault.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { AUTHORITY_FILE, onRequest, testDestination } from '../kit/test-destination.ts'
import {
  assertFound,
  assertOk,
  examine,
  runDoctor,
  stoppedVault,
  variablesOf,
} from './doctor-stage.ts'

const BEHIND_MS = -2 * 60 * 60 * 1000
const PROGRAM = fileURLToPath(new URL('../../bin/symbolon.cjs', import.meta.url))

/** No test in this file changes it. */
const { variables, tenantId } = await stoppedVault({ after })

const elsewhere = temporaryFolder({ after })

/** Settings with which a check warns or fails, the remedy that it must return, and the settings after the remedy. */
const SETTINGS: [
  name: string,
  status: 'warning' | 'failed',
  wrong: Record<string, string>,
  remedy: RegExp,
  right: Record<string, string>,
][] = [
  [
    'unknown-settings',
    'warning',
    { SYMBOLON_METER_PORT: '9100' },
    /Rename SYMBOLON_METER_PORT to SYMBOLON_METRICS_PORT/,
    { SYMBOLON_METRICS_PORT: '9100' },
  ],
  ['unknown-settings', 'warning', { SYMBOLON_COLOUR: 'red' }, /Unset SYMBOLON_COLOUR/, {}],
  [
    'ignored-settings',
    'warning',
    { SYMBOLON_PORT: 'tcp://10.0.0.1:4400', SYMBOLON_PORT_4400_TCP: 'tcp://10.0.0.1:4400' },
    /set SYMBOLON_PORT in the pod's specification.*enableServiceLinks: false/,
    { SYMBOLON_PORT: '4400', SYMBOLON_PORT_4400_TCP: 'tcp://10.0.0.1:4400' },
  ],
  [
    'setting-conflicts',
    'warning',
    {
      SYMBOLON_PUBLIC_URL: 'https://vault.example',
      SYMBOLON_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE: '20',
    },
    /Set SYMBOLON_TRUSTED_PROXIES to the addresses/,
    {
      SYMBOLON_PUBLIC_URL: 'https://vault.example',
      SYMBOLON_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE: '20',
      SYMBOLON_TRUSTED_PROXIES: '10.0.0.5',
    },
  ],
  [
    'setting-conflicts',
    'failed',
    { SYMBOLON_METRICS_PORT: '4400', SYMBOLON_PORT: '4400' },
    /Set SYMBOLON_METRICS_PORT to another port/,
    { SYMBOLON_METRICS_PORT: '4401', SYMBOLON_PORT: '4400' },
  ],
  [
    'setting-conflicts',
    'warning',
    { SYMBOLON_DATABASE_URL: 'postgres://symbolon@127.0.0.1:1/none' },
    /Unset SYMBOLON_DATABASE_URL/,
    {},
  ],
  [
    'listen-address',
    'warning',
    { SYMBOLON_HOST: '0.0.0.0' },
    /Set SYMBOLON_HOST to localhost/,
    { SYMBOLON_HOST: 'localhost' },
  ],
  [
    'listen-address',
    'warning',
    { SYMBOLON_HOST: '0.0.0.0' },
    /set SYMBOLON_PUBLIC_URL to its https URL/,
    { SYMBOLON_HOST: '0.0.0.0', SYMBOLON_PUBLIC_URL: 'https://vault.example' },
  ],
  [
    'listen-address',
    'warning',
    { SYMBOLON_METRICS_HOST: '::', SYMBOLON_METRICS_PORT: '9100' },
    /Set SYMBOLON_METRICS_HOST to localhost/,
    { SYMBOLON_METRICS_HOST: 'localhost', SYMBOLON_METRICS_PORT: '9100' },
  ],
  [
    'public-url',
    'warning',
    { SYMBOLON_PUBLIC_URL: 'http://vault.example' },
    /set SYMBOLON_PUBLIC_URL to its https URL/,
    { SYMBOLON_PUBLIC_URL: 'https://vault.example' },
  ],
  [
    'egress-allow-list',
    'warning',
    { SYMBOLON_EGRESS_ALLOW: '10.1.0.0/16,0.0.0.0/0' },
    /Replace it in SYMBOLON_EGRESS_ALLOW/,
    { SYMBOLON_EGRESS_ALLOW: '10.1.0.0/16,10.2.0.1:9000' },
  ],
  [
    'egress-allow-list',
    'warning',
    { SYMBOLON_EGRESS_ALLOW: '169.254.0.0/16' },
    /do not contain 169\.254\.169\.254/,
    { SYMBOLON_EGRESS_ALLOW: '10.1.0.0/16' },
  ],
  [
    'audit-checkpoint-file',
    'failed',
    { SYMBOLON_AUDIT_CHECKPOINT_FILE: join(variables['SYMBOLON_DATA_DIR']!, 'checkpoints') },
    /another volume/,
    { SYMBOLON_AUDIT_CHECKPOINT_FILE: join(elsewhere, 'checkpoints') },
  ],
  [
    'egress-allow-list',
    'warning',
    { SYMBOLON_EGRESS_ALLOW_BY_TENANT: `${NIL_ID}=169.254.0.0/16` },
    /Replace it in SYMBOLON_EGRESS_ALLOW_BY_TENANT/,
    { SYMBOLON_EGRESS_ALLOW_BY_TENANT: `${NIL_ID}=10.1.0.0/16` },
  ],
  [
    'egress-tenants',
    'warning',
    { SYMBOLON_EGRESS_ALLOW_BY_TENANT: `${NIL_ID}=10.1.0.0/16` },
    /Correct the id in SYMBOLON_EGRESS_ALLOW_BY_TENANT/,
    { SYMBOLON_EGRESS_ALLOW_BY_TENANT: `${tenantId.toUpperCase()}=10.1.0.0/16` },
  ],
  [
    'audit-checkpoint-file',
    'failed',
    { SYMBOLON_AUDIT_CHECKPOINT_FILE: elsewhere },
    /a file that the service can append to/,
    { SYMBOLON_AUDIT_CHECKPOINT_FILE: join(elsewhere, 'checkpoints') },
  ],
  [
    'service',
    'failed',
    { SYMBOLON_HOST: '192.0.2.1', SYMBOLON_PORT: '4400' },
    /Set SYMBOLON_HOST to localhost/,
    { SYMBOLON_HOST: 'localhost', SYMBOLON_PORT: '0' },
  ],
]

describe('symbolon doctor on settings', () => {
  for (const [name, status, wrong, remedy, right] of SETTINGS) {
    test(`${name}: finds ${Object.entries(wrong).join(' ')}, and nothing after ${String(remedy)}`, async () => {
      assertFound(await examine({ variables: { ...variables, ...wrong } }), name, status, remedy)
      assertOk(await examine({ variables: { ...variables, ...right } }), name)
    })
  }

  test('settings: reports an unusable value alone, as JSON too', async () => {
    const wrong = await runDoctor({ ...variables, SYMBOLON_PORT: '70000' })
    assert.equal(wrong.exitCode, 1)
    assert.deepEqual([...wrong.checks.keys()], ['settings'])
    assertFound(wrong.checks, 'settings', 'failed', /Correct this setting/)
    assert.match(wrong.checks.get('settings')!.message, /a port from 0 to 65535/)
    const misspelled = await runDoctor({ ...variables, SYMBOLON_METRIC_PORT: '9100' })
    assertFound(misspelled.checks, 'settings', 'failed', /Correct this setting/)
    assert.match(misspelled.checks.get('settings')!.message, /if you mean SYMBOLON_METRICS_PORT/)
  })

  test('ignored-settings: reports no variable that a flag overrides', async () => {
    const linked = { ...variables, SYMBOLON_PORT: 'tcp://10.0.0.1:4400' }
    assertFound((await runDoctor(linked)).checks, 'ignored-settings', 'warning', /SYMBOLON_PORT/)
    assertOk((await runDoctor(linked, '--port', '4400')).checks, 'ignored-settings', 'settings')
  })

  test('reactor-sandbox: finds that bubblewrap is missing, and nothing at the level jail', async () => {
    const bubblewrap = '/nonexistent/bwrap'
    const hardened = { ...variables, SYMBOLON_REACTOR_LEVEL: 'hardened' }
    const found = await examine({ variables: hardened, bubblewrap, sandbox: true })
    assertFound(found, 'reactor-sandbox', 'failed', /set SYMBOLON_REACTOR_LEVEL to jail/)
    assert.match(found.get('reactor-sandbox')!.message, /bubblewrap is missing/)
    const jail = { ...variables, SYMBOLON_REACTOR_LEVEL: 'jail' }
    assertOk(await examine({ variables: jail, bubblewrap, sandbox: true }), 'reactor-sandbox')
  })

  test('reactor-sandbox: warns about the level portable; reactor-packages: about a missing package', async () => {
    const wrong = {
      ...variables,
      SYMBOLON_REACTOR_LEVEL: 'portable',
      SYMBOLON_REACTOR_PACKAGES: 'no-such-package',
    }
    const found = await examine({ variables: wrong, sandbox: true })
    assertFound(found, 'reactor-sandbox', 'warning', /Set SYMBOLON_REACTOR_LEVEL to jail/)
    assertFound(
      found,
      'reactor-packages',
      'warning',
      /npm install no-such-package .* or remove them from SYMBOLON_REACTOR_PACKAGES/,
    )
    const right = {
      ...variables,
      SYMBOLON_REACTOR_LEVEL: 'jail',
      SYMBOLON_REACTOR_PACKAGES: 'pdf-lib',
    }
    assertOk(
      await examine({ variables: right, sandbox: true }),
      'reactor-sandbox',
      'reactor-packages',
    )
  })

  test('reactor-modules: warns about part of the bundled packages, and reports that there are none', async (t) => {
    const bare = join(temporaryFolder(t), 'index.js')
    const without = await examine({ variables, anchor: bare, sandbox: true })
    assertOk(without, 'reactor-modules')
    assert.match(without.get('reactor-modules')!.message, /@symbolon\/reactor-modules is not/)
    installModules(dirname(bare), ['uuid', 'lodash'])
    assertFound(
      await examine({ variables, anchor: bare, sandbox: true }),
      'reactor-modules',
      'warning',
      /Install the version of @symbolon\/reactor-modules/,
    )
    const { message } = (await examine({ variables, sandbox: true })).get('reactor-modules')!
    assert.equal(message, 'All bundled packages are installed.')
  })

  test('certificates: finds a file without one, and one that has expired', async () => {
    const wrong = { ...variables, SYMBOLON_EXTRA_CA_FILE: PROGRAM }
    const found = await examine({ variables: wrong })
    assertFound(found, 'certificates', 'failed', /Set SYMBOLON_EXTRA_CA_FILE to a PEM file/)
    const right = { ...variables, SYMBOLON_EXTRA_CA_FILE: AUTHORITY_FILE }
    assert.equal(readAuthorities(AUTHORITY_FILE).length, 1)
    const late = { now: () => Date.parse('2200-01-01') }
    assertFound(
      await examine({ variables: right, machine: late }),
      'certificates',
      'warning',
      /Replace them/,
    )
    assertOk(await examine({ variables: right }), 'certificates')
  })
})

describe('symbolon doctor on a machine', () => {
  const MiB = 1024 * 1024
  const disk = (more: Partial<DiskFigures>) => ({
    disk: async () => ({ freeBytes: 1e12, freeFiles: 1e6, type: 0xef53, ...more }),
  })
  const memory = (availableBytes: number) => ({
    memory: async () => ({ availableBytes, totalBytes: 1024 * MiB }),
  })
  const cases: [
    name: string,
    status: 'warning' | 'failed',
    wrong: Parameters<typeof examine>[0]['machine'],
    remedy: RegExp,
    right: Parameters<typeof examine>[0]['machine'],
  ][] = [
    [
      'node-version',
      'failed',
      { nodeVersion: '24.9.1' },
      /Install Node 24/,
      { nodeVersion: '25.0.0' },
    ],
    ['clock', 'failed', { now: () => 1e12 }, /Set the clock/, {}],
    ['memory', 'warning', memory(64 * MiB), /more memory/, memory(512 * MiB)],
    ['disk-space', 'failed', disk({ freeBytes: MiB }), /Free some space/, disk({})],
    ['disk-space', 'warning', disk({ freeBytes: 64 * MiB }), /a backup needs 1 MiB/, disk({})],
    ['inodes', 'failed', disk({ freeFiles: 3 }), /Remove files/, disk({})],
    ['file-system', 'failed', disk({ type: 0x6969 }), /to a local disk/, disk({})],
    ['file-system', 'warning', disk({ type: 0x794c7630 }), /in a volume/, disk({})],
    ['file-system', 'warning', disk({ type: 0x01021994 }), /folder on a disk/, disk({})],
    [
      'temporary-folder',
      'failed',
      { temporaryFolder: async () => ({ path: '/nonexistent', flaw: 'ENOENT' }) },
      /Set TMPDIR/,
      {},
    ],
  ]
  const service = (open: number, limit: number) => ({
    lockHolder: async () => 1,
    openFiles: async () => ({ limit, open }),
  })
  cases.push(
    ['open-files', 'failed', service(950, 1_000), /LimitNOFILE=65536/, service(950, 65_536)],
    ['open-files', 'warning', service(50, 1_000), /LimitNOFILE=65536/, service(50, 65_536)],
  )
  for (const [at, [name, status, wrong, remedy, right]] of cases.entries()) {
    test(`${name}: finds what is wrong (${at + 1}), and nothing once it is right`, async () => {
      assertFound(await examine({ variables, machine: wrong! }), name, status, remedy)
      assertOk(await examine({ variables, machine: right! }), name)
    })
  }

  test('clock: finds one that is behind the newest audit event', async () => {
    const behind = { now: () => Date.now() + BEHIND_MS }
    const found = await examine({ variables, machine: behind })
    assertFound(found, 'clock', 'failed', /Set the clock/)
    assert.match(found.get('clock')!.message, /newest audit event/)
    assertOk(await examine({ variables }), 'clock')
  })

  test('open-files: finds a low limit of the shell, and none after ulimit', async () => {
    const command = 'ulimit -n 512; exec "$0" "$1" doctor --json'
    const { stdout } = spawnSync('/bin/sh', ['-c', command, process.execPath, PROGRAM], {
      env: { ...bareEnvironment(), ...variables },
      encoding: 'utf8',
    })
    const { checks } = JSON.parse(stdout) as { checks: CheckResult[] }
    const found = new Map(checks.map((it) => [it.name, it]))
    const remedy = assertFound(found, 'open-files', 'warning', /ulimit -n 65536/)
    assert.match(remedy, /LimitNOFILE/)
    const raised = { openFiles: async () => ({ limit: 65_536, open: null }) }
    assertOk(await examine({ variables, machine: raised }), 'open-files')
  })
})

describe('symbolon doctor on the port', () => {
  test('service: finds another program on it, and nothing once that is gone', async () => {
    const other = await testDestination((socket) => socket.end('SSH-2.0-other\r\n'))
    const port = String(other.port)
    const settings = { ...variables, SYMBOLON_HOST: '127.0.0.1', SYMBOLON_PORT: port }
    assertFound(await examine({ variables: settings }), 'service', 'failed', /Stop that program/)
    await other.close()
    assertOk(await examine({ variables: settings }), 'service')
  })

  test('service: finds that the settings name another port, and another vault', async (t) => {
    const home = temporaryFolder(t)
    const own = variablesOf(home)
    const service = await startHostedVault(join(home, 'data'), own)
    t.after(() => service.stop())
    const { port } = new URL(service.url)
    const wrong = { ...own, SYMBOLON_HOST: '127.0.0.1', SYMBOLON_PORT: '1' }
    const remedy = assertFound(
      await examine({ variables: wrong }),
      'service',
      'failed',
      /SYMBOLON_HOST, SYMBOLON_PORT/,
    )
    assert.match(remedy, /host and port of the service/)
    const right = { ...wrong, SYMBOLON_PORT: port }
    assertOk(await examine({ variables: right }), 'service')

    const taken = await examine({ variables: { ...variables, SYMBOLON_PORT: port } })
    assertFound(taken, 'service', 'failed', /SYMBOLON_DATA_DIR .* or SYMBOLON_PORT/)
    assertOk(await examine({ variables }), 'service')
  })

  test('service: finds that it is not ready, or is no service, until it is', async (t) => {
    const answers = [
      ['503 Unavailable', '{"status":"unavailable","checks":{"store":"unavailable"}}'],
      ['200 OK', 'hello'],
      ['200 OK', '{"status":"ok","checks":{"store":"ok"}}'],
    ]
    const listener = await testDestination(
      onRequest((socket) => {
        const [status, body] = answers.shift()!
        const head = `content-length: ${body!.length}\r\nconnection: close`
        socket.end(`HTTP/1.1 ${status}\r\n${head}\r\n\r\n${body}`)
      }),
    )
    t.after(() => listener.close())
    const input = {
      variables: {
        ...variables,
        SYMBOLON_HOST: '127.0.0.1',
        SYMBOLON_PORT: String(listener.port),
      },
      machine: { lockHolder: async () => process.pid },
    }
    assertFound(await examine(input), 'service', 'failed', /Read the last errors in its log/)
    assertFound(await examine(input), 'service', 'failed', /SYMBOLON_PORT to the port of the/)
    assertOk(await examine(input), 'service')
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { startCluster } from '../../../../test/kit/postgres/cluster.ts'
import { atLeisure, bounded, connectedTo } from './connection.ts'
import { connectionSettings } from './connection-settings.ts'
import { PostgresStore } from './store.ts'

describe('connectionSettings()', () => {
  test('reads what the address says', () => {
    const url = 'postgres://some%40one:p%2Fw@db.example.com:6432/vault?sslmode=disable'
    const { servers, user, password, database, application_name } = connectionSettings(url)
    const { host, port, ssl } = servers.preferred
    assert.equal(application_name, 'symbolon')
    const named = connectionSettings(`${url}&application_name=vault%201`)
    assert.equal(named.application_name, 'vault 1')
    assert.deepEqual(
      { host, port, user, database, ssl },
      {
        host: 'db.example.com',
        port: 6432,
        user: 'some@one',
        database: 'vault',
        ssl: false,
      },
    )
    assert.equal((password as () => string)(), 'p/w')
  })

  test('hides the password from whatever prints the settings or their copies', () => {
    const settings = { ...connectionSettings('postgres://a:hunter2@h/d') }
    const options = { depth: Infinity, showHidden: true }
    assert.doesNotMatch(inspect(settings, options) + JSON.stringify(settings), /hunter2/)
  })

  test('wants proof from every server but this machine, unless the URL says otherwise', () => {
    for (const host of [
      'db.example.com',
      '10.0.0.7',
      'localhost.example.com',
      '127.example.com',
      '[2001:db8::1]',
    ]) {
      const { ssl } = connectionSettings(`postgresql://${host}/vault`).servers.preferred
      assert.equal((ssl as { rejectUnauthorized: boolean }).rejectUnauthorized, true, host)
    }
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
      assert.equal(
        connectionSettings(`postgres://${host}/vault`).servers.preferred.ssl,
        false,
        host,
      )
    }
    assert.equal(
      connectionSettings('postgres://h/vault?host=/run/postgresql').servers.preferred.ssl,
      false,
    )
  })

  test('wants proof from this machine as well where authorities are named', () => {
    const authority = encodeURIComponent(pathOf('authority.pem'))
    const url = `postgres://localhost/vault?sslrootcert=${authority}`
    const { ssl } = connectionSettings(url).servers.preferred
    assert.equal((ssl as { rejectUnauthorized: boolean }).rejectUnauthorized, true)
    assert.equal(connectionSettings(`${url}&sslmode=disable`).servers.preferred.ssl, false)
  })

  test('reads several hosts, each with its own port and name to prove', () => {
    const { servers, user, password, database } = connectionSettings(
      'postgres://me:p,%40w@db1.example.com:6432,[2001:db8::1],localhost:7/vault?target_session_attrs=primary',
    )
    assert.deepEqual({ user, database }, { user: 'me', database: 'vault' })
    assert.equal((password as () => string)(), 'p,@w')
    const [first, second, third] = servers.all
    const proof = { rejectUnauthorized: true, minVersion: 'TLSv1.2' }
    assert.deepEqual(first, {
      host: 'db1.example.com',
      port: 6432,
      ssl: { ...proof, servername: 'db1.example.com' },
    })
    assert.deepEqual(second, { host: '2001:db8::1', ssl: proof })
    assert.deepEqual(third, { host: 'localhost', port: 7, ssl: false })
    assert.equal(servers.all.length, 3)
  })

  test('reads several sockets, on the one port of the address', () => {
    const { servers } = connectionSettings('postgres://h:6432/vault?host=/run/a,/run/b')
    const [first, second] = servers.all
    assert.deepEqual(first, { host: '/run/a', port: 6432, ssl: false })
    assert.deepEqual(second, { host: '/run/b', port: 6432, ssl: false })
  })

  test('refuses a list that is not one, and any server but the primary, and never repeats it', () => {
    for (const url of [
      'postgres://a:hunter2@h1,/d',
      'postgres://a:hunter2@,h2/d',
      'postgres://a:hunter2@h1,,h2/d',
      'postgres://a:hunter2@h1:5432:5433,h2/d',
      'postgres://a:hunter2@h1:0,h2/d',
      'postgres://a:hunter2@h1:65536,h2/d',
      'postgres://a:hunter2@h1:,h2/d',
      'postgres://a:hunter2@h1, h2/d',
      'postgres://a:hunter2@[h1],h2/d',
      'postgres://a:hunter2@2001:db8::1,h2/d',
      'postgres://a:hunter2@h1,h2',
      'postgres://a:hunter2@h1,h2/d?host=/run',
      'postgres://a:hunter2@h1/d?host=/run,',
      'mysql://a:hunter2@h1,h2/d',
      ...['any', 'standby', 'prefer-standby', 'read-only', ''].map(
        (it) => `postgres://a:hunter2@h1,h2/d?target_session_attrs=${it}`,
      ),
    ]) {
      assert.throws(
        () => connectionSettings(url),
        (error: Error) => /database/.test(error.message) && !/hunter2/.test(error.message),
        url,
      )
    }
    const url = 'postgres://h/d?target_session_attrs='
    for (const it of ['read-write', 'primary']) connectionSettings(url + it)
    assert.throws(
      () => connectionSettings(`${url}any`),
      /target_session_attrs read-write or primary/,
    )
  })

  test('refuses what is no address, and what only looks safe, and never repeats it', () => {
    for (const url of [
      'mysql://a:hunter2@h/d',
      'postgres://a:hunter2@h/',
      'not an address hunter2',
      'postgres://a:hunter2@h/d?sslmode=require',
      'postgres://a:hunter2@h/d?sslmode=prefer',
      'postgres://a:hunter2@h/d?passfile=',
      'postgres://a:hunter2@h/d?passfile',
      'postgres://a:hunter2@h/d#x',
      'postgres://a:hunter2@h/d#?passfile=/p',
      'postgres://a:hunter2@h1,h2/d#',
      'postgres://h#a:hunter2@h/d',
      'postgres://a:hunter2@h/d?sslmode=no-verify',
      'postgres://a:hunter2@h/d?ssl=true',
      'postgres://a:hunter2%@h/d',
      'postgres://a:hunter2@h/d%e4',
      'postgres://a:hunter2@h/%zz',
      'postgres://a:hunter2@h/d?sslrootcert=/no/such/file',
      'postgres://a:hunter2@localhost/d?sslrootcert=/no/such/file',
    ]) {
      assert.throws(
        () => connectionSettings(url),
        (error: Error) => /database/.test(error.message) && !/hunter2/.test(error.message),
        url,
      )
    }
  })
})

test('a new connection has one time limit, of which each host gets its part', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const real = setTimeout
  const limits: number[] = []
  t.mock.method(globalThis, 'setTimeout', (...[work, ms]: Parameters<typeof setTimeout>) => {
    if (ms === undefined || ms < 2_000) return real(work, ms)
    limits.push(ms)
    return real(work, 0)
  })
  for (const hosts of [1, 2]) {
    const list = Array<string>(hosts).fill(`127.0.0.1:${port}`).join(',')
    const settings = connectionSettings(`postgres://a@${list}/vault`)
    await assert.rejects(connectedTo(bounded(settings)), /Cannot reach the database/)
    await assert.rejects(
      atLeisure(settings, async () => {}),
      /Cannot reach the database/,
    )
  }
  assert.deepEqual(limits, [4_000, 20_000, 2_000, 2_000, 10_000, 10_000])
})

describe('PostgresStore.open() over TLS', () => {
  test('takes a server that proves its name by an authority it trusts, and no other', async (t) => {
    const [key, certificate] = ['server.key', 'destination.pem'].map((it) =>
      readFileSync(pathOf(it), 'utf8'),
    ) as [string, string]
    const start = async (tries: number): Promise<number> => {
      const port = await freePort()
      try {
        const cluster = await startCluster({ tls: { port, certificate, key } })
        t.after(() => cluster.stop())
        return port
      } catch (error) {
        // Another process may have taken the port.
        if (tries === 1 || !/Address already in use/.test(String(error))) throw error
        return await start(tries - 1)
      }
    }
    const port = await start(5)
    const at = (host: string, more: string) =>
      `postgres://postgres@${host}:${port}/postgres?sslmode=verify-full${more}`
    const authority = encodeURIComponent(pathOf('authority.pem'))
    const store = await PostgresStore.open({ url: at('localhost', `&sslrootcert=${authority}`) })
    await store.check()
    await store.close()
    await assert.rejects(PostgresStore.open({ url: at('localhost', '') }), ({ cause }: Error) =>
      /certificate|issuer/.test(String(cause)),
    )
    // The same server, by an address that its certificate does not have.
    const unnamed = at('127.0.0.2', `&sslrootcert=${authority}`)
    await assert.rejects(PostgresStore.open({ url: unnamed }), ({ cause }: Error) =>
      /IP: 127\.0\.0\.2 is not in the cert's list/.test(String(cause)),
    )
  })
})

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../../../../test/kit/certificates/${name}`, import.meta.url))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

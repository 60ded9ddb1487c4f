import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startCluster } from '../../../../test/kit/postgres/cluster.ts'
import { connectionSettings } from './connection-settings.ts'
import { PostgresStore } from './store.ts'

describe('connectionSettings()', () => {
  test('reads what the address says', () => {
    const { host, port, user, password, database, ssl } = connectionSettings(
      'postgres://some%40one:p%2Fw@db.example.com:6432/vault?sslmode=disable',
    )
    assert.deepEqual(
      { host, port, user, password, database, ssl },
      {
        host: 'db.example.com',
        port: 6432,
        user: 'some@one',
        password: 'p/w',
        database: 'vault',
        ssl: false,
      },
    )
  })

  test('wants proof from every server but this machine, unless the URL says otherwise', () => {
    for (const host of [
      'db.example.com',
      '10.0.0.7',
      'localhost.example.com',
      '127.example.com',
      '[2001:db8::1]',
    ]) {
      const { ssl } = connectionSettings(`postgresql://${host}/vault`)
      assert.equal((ssl as { rejectUnauthorized: boolean }).rejectUnauthorized, true, host)
    }
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
      assert.equal(connectionSettings(`postgres://${host}/vault`).ssl, false, host)
    }
    assert.equal(connectionSettings('postgres://h/vault?host=/run/postgresql').ssl, false)
  })

  test('wants proof from this machine as well where authorities are named', () => {
    const authority = encodeURIComponent(pathOf('authority.pem'))
    const url = `postgres://localhost/vault?sslrootcert=${authority}`
    const { ssl } = connectionSettings(url)
    assert.equal((ssl as { rejectUnauthorized: boolean }).rejectUnauthorized, true)
    assert.equal(connectionSettings(`${url}&sslmode=disable`).ssl, false)
  })

  test('refuses what is no address, and what only looks safe, and never repeats it', () => {
    for (const url of [
      'mysql://a:hunter2@h/d',
      'postgres://a:hunter2@h/',
      'not an address hunter2',
      'postgres://a:hunter2@h/d?sslmode=require',
      'postgres://a:hunter2@h/d?sslmode=prefer',
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

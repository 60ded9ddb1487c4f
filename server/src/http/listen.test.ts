import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { tryBinding } from './listen.ts'

/** A loopback address that no other process uses: ports of 127.0.0.1 change hands all the time. */
const HOST = `127.${64 + ((process.pid >> 16) & 63)}.${(process.pid >> 8) & 255}.${process.pid & 255}`
const ADDRESS = { host: HOST, port: 4400, settings: 'X and Y' }

describe('tryBinding()', () => {
  test('never listens on the address, so that no client can connect', async (t) => {
    const ports: unknown[] = []
    const channel = 'tracing:net.server.listen:asyncStart'
    const note = (message: unknown): void => {
      ports.push((message as { options: { port: number } }).options.port)
    }
    subscribe(channel, note)
    t.after(() => unsubscribe(channel, note))
    await tryBinding(ADDRESS, [{ ...ADDRESS, port: 4401 }])
    // The peers of the bound sockets.
    assert.deepEqual(ports, [0, 0])
  })

  test('releases the address at once', async () => {
    await tryBinding(ADDRESS, [])
    await tryBinding(ADDRESS, [])
    const server = createServer().listen(ADDRESS.port, HOST)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
  })

  test('rejects an address that is taken, the first or another, and names its settings', async (t) => {
    const server = createServer().listen(ADDRESS.port, HOST)
    t.after(() => server.close())
    await once(server, 'listening')
    const message = `Cannot listen on ${HOST}, port 4400, as X and Y say`
    await assert.rejects(tryBinding(ADDRESS, []), { message })
    await assert.rejects(tryBinding({ ...ADDRESS, port: 4402 }, [ADDRESS]), { message })
    // A wildcard address.
    await assert.rejects(tryBinding({ ...ADDRESS, host: '0.0.0.0' }, []), /Cannot listen on 0/)
  })

  test('rejects an address of another machine', async () => {
    await assert.rejects(tryBinding({ ...ADDRESS, host: '192.0.2.1' }, []), /192\.0\.2\.1/)
  })

  test('rejects addresses that would take each other’s port', async () => {
    const clash = { message: `Cannot listen on 0.0.0.0, port 4400, as X and Y say` }
    await assert.rejects(tryBinding(ADDRESS, [{ ...ADDRESS, host: '0.0.0.0' }]), clash)
    await assert.rejects(tryBinding(ADDRESS, [ADDRESS]), /Cannot listen/)
    await tryBinding(ADDRESS, [{ ...ADDRESS, port: 4401 }])
    await tryBinding({ ...ADDRESS, port: 0 }, [{ ...ADDRESS, port: 0 }])
  })
})

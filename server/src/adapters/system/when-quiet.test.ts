import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, connect, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { whenQuiet } from './when-quiet.ts'

test(
  'whenQuiet() waits while there is something to read, and no longer',
  { timeout: 20_000 },
  async (t) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const writer = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [[reader]] = await Promise.all([once(server, 'connection'), once(writer, 'connect')])
    t.after(() => {
      writer.destroy()
      reader.destroy()
      server.close()
    })
    reader.resume()
    writer.setNoDelay()
    const quiet = Promise.withResolvers<void>()
    let called = false
    whenQuiet(() => {
      called = true
      quiet.resolve()
    })
    const began = performance.now()
    while (performance.now() - began < 50) {
      writer.write('.')
      await setImmediate()
      assert.equal(called, false)
    }
    await quiet.promise
  },
)

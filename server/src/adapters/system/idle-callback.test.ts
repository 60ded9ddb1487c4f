import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, connect } from 'node:net'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { onIdle } from './idle-callback.ts'

test('onIdle() waits while there is something to read, and no longer', async (t) => {
  // Avoids TCP, which may deliver one loop iteration later. Linux has abstract socket names without
  // files.
  const server = createServer().listen(`\0symbolon-idle-callback-${randomUUID()}`)
  await once(server, 'listening')
  const writer = connect(server.address() as string)
  const [[reader]] = await Promise.all([once(server, 'connection'), once(writer, 'connect')])
  t.after(() => {
    writer.destroy()
    reader.destroy()
    server.close()
  })
  reader.resume()
  const idle = Promise.withResolvers<void>()
  let called = false
  onIdle(() => {
    called = true
    idle.resolve()
  })
  const began = performance.now()
  while (performance.now() - began < 50) {
    writer.write('.')
    await setImmediate()
    assert.equal(called, false)
  }
  await idle.promise
})

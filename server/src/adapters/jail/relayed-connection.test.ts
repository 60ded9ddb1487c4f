import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { FRAME } from './guest/frames.ts'
import { RelayedConnection } from './relayed-connection.ts'

/** A connection to `outside`, and the frames that its guest was sent. */
function relayed() {
  const sent: string[] = []
  const guest = { ready: false }
  const outside = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
  const connection = new RelayedConnection({
    send: (kind, content, flushed) => {
      sent.push(kind === FRAME.data ? String(content) : nameOf(kind))
      flushed?.()
    },
    ready: () => guest.ready,
    gone: (kind) => void sent.push(`${nameOf(kind)} at last`),
  })
  return { connection, guest, outside, sent }
}

function nameOf(kind: number): string {
  return Object.entries(FRAME).find(([, it]) => it === kind)![0]
}

async function turn(): Promise<void> {
  await new Promise((resolve) => void setImmediate(resolve))
}

test('sends what came before the end and the close, when the guest has room again', async () => {
  const { connection, guest, outside, sent } = relayed()
  await connection.begin(async () => outside)
  outside.push('bytes')
  await turn()
  // A paused stream may end: a resume() that was followed by a pause() at once reads it nevertheless.
  outside.emit('end')
  outside.destroy()
  await turn()
  assert.deepEqual(sent, ['opened'])
  guest.ready = true
  connection.pump()
  assert.deepEqual(sent, ['opened', 'bytes', 'finish', 'close at last'])
})

test('is gone when the guest closes it, even if the outside was closed before all was sent', async () => {
  const { connection, outside, sent } = relayed()
  await connection.begin(async () => outside)
  outside.push('bytes')
  await turn()
  outside.emit('end')
  outside.destroy()
  await turn()
  connection.take(FRAME.close, Buffer.alloc(0))
  assert.deepEqual(sent, ['opened', 'close at last'])
})

test('ends and is gone at once, if nothing is left to send', async () => {
  const { connection, guest, outside, sent } = relayed()
  guest.ready = true
  await connection.begin(async () => outside)
  outside.push('bytes')
  outside.push(null)
  outside.end()
  while (!outside.closed) await turn()
  assert.deepEqual(sent, ['opened', 'bytes', 'finish', 'close at last'])
})

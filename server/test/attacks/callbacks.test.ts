import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { UndiciEgress } from '../../src/adapters/egress/undici-egress.ts'
import { parseDestination } from '../../src/base/destination.ts'
import { CALLBACK_ANSWER_MS_MAX, CALLBACKS_TO_ONE_AT_ONCE } from '../../src/base/limits.ts'
import { reactorStage } from '../kit/reactor-stage.ts'
import { onRequest, testAuthority, testDestination } from '../kit/test-destination.ts'
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6, formsOf } from './forbidden-forms.ts'

test('no way to write a forbidden address is accepted for a callback', async () => {
  // A host the URL parser does not take for an address is a name; its meaning is up to the resolver.
  const egress = new UndiciEgress({
    allow: [],
    extraAuthorities: [],
    resolve: async () => ['127.0.0.1'],
  })
  const { react, vault } = await reactorStage({ change: (world) => ({ ...world, egress }) })
  const forms = [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6].flatMap(formsOf)
  const accepted: string[] = []
  for (const url of forms) {
    const reply = await react({ callback_url: url })
    if (reply.status !== 400) accepted.push(`${url}: ${reply.status}`)
  }
  assert.ok(forms.length >= 400, `${forms.length} forms`)
  assert.deepEqual(accepted, [])
  assert.ok(!vault.world.committed.some((it) => 'entity' in it && it.entity === 'job'))
  await egress.close()
})

test('a receiver that answers 200 and never ends its answer holds few connections, and briefly', async (t) => {
  const { invoke, deliver, receiver, answered } = await receiverStage(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const trickling = setInterval(() => socket.write('1\r\nx\r\n'), 20)
    socket.on('close', () => clearInterval(trickling))
  })
  const invocations = 3 * CALLBACKS_TO_ONE_AT_ONCE
  for (let n = 0; n < invocations; n++) await invoke()
  const most = await deliver()
  assert.equal(answered(), invocations, 'each was delivered, and once')
  assert.ok(most <= CALLBACKS_TO_ONE_AT_ONCE, `${most} connections at a time`)
  while (receiver.open() > 0) await new Promise((resolve) => setImmediate(resolve))
})

test('a receiver whose answer is too long has its connection ended, whatever time it had', async (t) => {
  const { invoke, vault, receiver, answered } = await receiverStage(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`
    const send = (): void => {
      while (socket.write(chunk));
    }
    socket.on('drain', send)
    send()
  })
  await invoke()
  const { store } = vault.world
  while ((await store.jobs.unfinished(vault.tenantId)) > 0) {
    await vault.app.jobs.poll()
    await new Promise((resolve) => setImmediate(resolve))
  }
  while (receiver.open() > 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(answered(), 1)
})

test('a receiver that ends its answer has its connection used again', async (t) => {
  const { invoke, deliver, receiver, answered } = await receiverStage(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
  })
  for (let n = 0; n < 5; n++) {
    await invoke()
    await deliver()
  }
  assert.deepEqual([answered(), receiver.accepted()], [5, 1])
})

/** A reactor whose results go to a receiver over TLS, which answers as `answer` does. */
async function receiverStage(t: TestContext, answer: (socket: Socket) => void) {
  let answered = 0
  const counting = onRequest((socket) => {
    answered += 1
    answer(socket)
  })
  const receiver = await testDestination(counting, { certificate: 'destination' })
  const allow = [parseDestination('localhost')!]
  const egress = new UndiciEgress({ allow, extraAuthorities: [testAuthority()] })
  const { react, vault } = await reactorStage({
    oneServer: 'a process by itself',
    change: (world) => ({ ...world, egress }),
  })
  t.after(async () => {
    await egress.close()
    await receiver.close()
    await vault.close()
  })
  return {
    vault,
    receiver,
    answered: () => answered,
    invoke: async () => {
      const reply = await react({ callback_url: `https://localhost:${receiver.port}/` })
      assert.equal(reply.status, 202, reply.text)
    },
    /** Delivers all results, while time passes; returns how many connections were open at a time. */
    deliver: async () => {
      let most = 0
      const { clock, store } = vault.world
      while ((await store.jobs.unfinished(vault.tenantId)) > 0) {
        await vault.app.jobs.poll()
        clock.elapse(CALLBACK_ANSWER_MS_MAX)
        await new Promise((resolve) => setImmediate(resolve))
        most = Math.max(most, receiver.open())
      }
      return most
    },
  }
}

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { roundRobin } from './round-robin.ts'

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Answers with its name and the request it received. */
function echo(name: string): RequestListener {
  return (from, to) => {
    void from.toArray().then((chunks) => {
      const sent = Buffer.concat(chunks).toString()
      to.writeHead(202, 'Gladly', { 'x-name': name })
      to.end(`${from.method} ${from.url} ${String(from.headers['x-a'])} ${sent}`)
    })
  }
}

test('roundRobin() has each request answered by the server whose turn it is, and changes neither', async (t) => {
  const servers = [await serve(t, echo('one')), await serve(t, echo('other'))]
  const { url, close } = await roundRobin(servers)
  t.after(close)
  const names: (string | null)[] = []
  for (const [n, body] of ['a', 'b', 'c', 'd'].entries()) {
    const reply = await fetch(`${url}/p?n=${n}`, { method: 'POST', headers: { 'x-a': 'x' }, body })
    assert.deepEqual([reply.status, reply.statusText], [202, 'Gladly'])
    assert.equal(await reply.text(), `POST /p?n=${n} x ${body}`)
    names.push(reply.headers.get('x-name'))
  }
  assert.deepEqual(names, ['one', 'other', 'one', 'other'])
})

test('roundRobin() breaks off what a server breaks off', async (t) => {
  const breaking = await serve(t, (from) => void from.socket.destroy())
  const { url, close } = await roundRobin([await serve(t, echo('one')), breaking])
  t.after(close)
  assert.equal((await fetch(url)).status, 202)
  await assert.rejects(fetch(url))
})

test('roundRobin() of one server is its address', async () => {
  assert.equal((await roundRobin(['http://localhost:1'])).url, 'http://localhost:1')
})

/** `GET /metrics` of the service as it is run. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startVault, temporaryFolder, type RunningVault } from '../kit/running-vault.ts'

test('the metrics say what was done, on a port of their own, and nothing that belongs to a tenant', async (t) => {
  const vault = await startVault(temporaryFolder(t), { SYMBOLON_METRICS_PORT: '0' })
  t.after(() => vault.stop())
  const headers = {
    'BT-API-KEY': /^\s+api_key\s+(\S+)$/m.exec(vault.greeting)![1]!,
    'content-type': 'application/json',
  }
  const body = JSON.stringify({ name: 'Zaphod', type: 'private', permissions: ['token:create'] })
  const made = await fetch(`${vault.url}/applications`, { method: 'POST', headers, body })
  assert.equal(made.status, 201)
  const { id, key } = (await made.json()) as { id: string; key: string }
  assert.equal((await fetch(`${vault.url}/applications/${id}`, { headers })).status, 200)
  assert.equal((await fetch(`${vault.url}/tokens/nobody`, { headers })).status, 403)
  assert.equal((await fetch(`${vault.url}/tokens/nobody`)).status, 401)

  const url = `http://localhost:${await metricsPort(vault)}`
  let text = ''
  do {
    const reply = await fetch(`${url}/metrics`)
    assert.match(reply.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/)
    text = await reply.text()
    // A checkpoint is written every second, which takes a commit.
  } while (/^symbolon_commits_waiting [1-9]/m.test(text))
  const lines = text.split('\n')
  for (const line of [
    'symbolon_requests_total{route="/applications",method="POST",status="201"} 1',
    'symbolon_requests_total{route="/applications/:id",method="GET",status="200"} 1',
    'symbolon_requests_total{route="/tokens/:id",method="GET",status="403"} 1',
    'symbolon_requests_total{route="/tokens/:id",method="GET",status="401"} 1',
    'symbolon_request_seconds_count{route="/tokens/:id"} 2',
    'symbolon_request_seconds_bucket{route="/tokens/:id",le="+Inf"} 2',
    'symbolon_tenants 1',
    'symbolon_data_keys_rotating 0',
    'symbolon_commits_waiting 0',
    'symbolon_jobs{stage="run"} 0',
  ]) {
    assert.ok(lines.includes(line), `${line} is missing in\n${text}`)
  }
  assert.match(text, /^symbolon_commit_batch_seconds_count [1-9]/m)
  assert.match(text, /^process_resident_memory_bytes [1-9]\d{6}/m)
  for (const line of lines.filter((it) => it !== '' && !it.startsWith('#'))) {
    assert.match(line, /^[a-z_0-9]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[\d.e+-]+$/)
  }
  for (const secret of [id, key, 'Zaphod', 'nobody']) assert.ok(!text.includes(secret), secret)

  assert.equal((await fetch(`${url}/tokens`)).status, 404)
  assert.equal((await fetch(`${vault.url}/metrics`)).status, 404)
})

test('no request through the proxy reads the metrics, whatever block or name is allowed', async (t) => {
  const vault = await startVault(temporaryFolder(t), {
    SYMBOLON_METRICS_PORT: '0',
    SYMBOLON_EGRESS_ALLOW: '127.0.0.0/8,localhost',
  })
  t.after(() => vault.stop())
  const destination = createServer((_request, response) => response.end('reached'))
  t.after(() => destination.close())
  await once(destination.listen(0, '127.0.0.1'), 'listening')
  const { port: other } = destination.address() as AddressInfo
  const management = /^\s+api_key\s+(\S+)$/m.exec(vault.greeting)![1]!
  const made = await fetch(`${vault.url}/applications`, {
    method: 'POST',
    headers: { 'BT-API-KEY': management, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'out', type: 'private', permissions: ['proxy:invoke'] }),
  })
  const { key } = (await made.json()) as { key: string }
  const through = (host: string, port: number): Promise<Response> =>
    fetch(`${vault.url}/proxy`, {
      headers: { 'BT-API-KEY': key, 'BT-PROXY-URL': `http://${host}:${port}/metrics` },
    })
  assert.equal(await (await through('127.0.0.1', other)).text(), 'reached')
  const metrics = await metricsPort(vault)
  for (const host of ['127.0.0.1', '127.0.0.2', 'localhost']) {
    const reply = await through(host, metrics)
    const text = await reply.text()
    assert.ok(reply.status >= 400 && !text.includes('symbolon_'), `${reply.status} ${text}`)
  }
})

test('without a port nothing is measured and nothing listens', async (t) => {
  const vault = await startVault(temporaryFolder(t))
  await vault.stop()
  assert.doesNotMatch(vault.printed(), /"event":"metrics"/)
})

/** Waits for the log line with the port, which may be read after later output. */
async function metricsPort(vault: RunningVault): Promise<number> {
  const said = /"event":"metrics","port":(\d+)/
  while (!said.test(vault.printed())) await pause(10)
  return Number(said.exec(vault.printed())![1]!)
}

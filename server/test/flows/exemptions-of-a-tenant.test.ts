/** An operator exempts a destination for one of two tenants, and starts the service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSymbolon, startVault, temporaryFolder } from '../kit/running-vault.ts'
import { onRequest, testDestination } from '../kit/test-destination.ts'

test('SYMBOLON_EGRESS_ALLOW_BY_TENANT exempts destinations for the tenant it names, and no other', async (t) => {
  const answer = onRequest((socket) => socket.write('HTTP/1.1 204 Fine\r\n\r\n'))
  const destination = await testDestination(answer)
  t.after(() => destination.close())
  const folder = temporaryFolder(t)
  const tenants = []
  for (const name of ['first', 'second']) {
    const variables = { SYMBOLON_DATA_DIR: folder }
    const { status, out, err } = await runSymbolon(['init', '--json', '--name', name], variables)
    assert.equal(status, 0, err)
    tenants.push(JSON.parse(out) as { tenant_id: string; api_key: string })
  }
  const [first, second] = tenants
  const vault = await startVault(folder, {
    SYMBOLON_EGRESS_ALLOW_BY_TENANT: `${first!.tenant_id}=127.0.0.1:${destination.port}`,
  })
  t.after(() => vault.stop())

  const proxied = async ({ api_key: managementKey }: { api_key: string }): Promise<number> => {
    const call = (path: string, method: string, headers: Record<string, string>, body?: string) =>
      fetch(`${vault.url}${path}`, { method, headers, ...(body !== undefined && { body }) })
    const application = { name: 'x', type: 'private', permissions: ['token:use'] }
    const headers = { 'bt-api-key': managementKey, 'content-type': 'application/json' }
    const made = await call('/applications', 'POST', headers, JSON.stringify(application))
    const { key } = (await made.json()) as { key: string }
    const url = `http://127.0.0.1:${destination.port}`
    return (await call('/proxy', 'GET', { 'bt-api-key': key, 'bt-proxy-url': url })).status
  }
  assert.equal(await proxied(first!), 204)
  assert.equal(await proxied(second!), 400)
  assert.equal(destination.accepted(), 1)
})

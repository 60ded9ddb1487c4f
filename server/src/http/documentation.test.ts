import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { stillVault, type StillVault } from '../../test/kit/still-vault.ts'

describe('the documentation', () => {
  let vault: StillVault
  before(async () => void (vault = await stillVault()))
  after(() => vault.close())

  test('is linked from the page at /, every page of it and the OpenAPI document', async () => {
    const reply = await vault.call('GET', '/')
    assert.equal(reply.status, 200)
    assert.equal(reply.headers['content-type'], 'text/html; charset=utf-8')
    assert.match(reply.text, /<h1>Symbolon 0\.0\.0<\/h1>/)
    const links = [...reply.text.matchAll(/href="([^"]+)"/g)].map(([, it]) => it!)
    assert.deepEqual(links.slice(0, 3), [
      '/openapi.json',
      '/docs/interface.md',
      '/docs/expressions.md',
    ])
    assert.ok(links.includes('/docs/operate/egress.md'))
    assert.ok(!links.some((it) => it.includes('decisions')))
    for (const it of links) assert.equal((await vault.call('GET', it)).status, 200, it)
  })

  test('is served as text, which a browser neither runs nor embeds', async () => {
    const reply = await vault.call('GET', '/docs/interface.md')
    const file = new URL('../../../docs/interface.md', import.meta.url)
    assert.equal(reply.text, readFileSync(file, 'utf8'))
    assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    assert.match(String(reply.headers['content-security-policy']), /default-src 'none'/)
  })

  test('is all there is to read: no file beside it', async () => {
    for (const it of [
      '/docs/..%2Fpackage.json',
      '/docs/operate/..%2F..%2FREADME.md',
      '/docs/operate%2Frun.md',
      '/docs/decisions/0001-node-24-brought-along-source-run-as-it-stands.md',
      '/docs/constructor',
      '/docs/%2Fetc%2Fpasswd',
      '/docs/interface',
    ]) {
      const expected = it === '/docs/operate%2Frun.md' ? 200 : 404
      assert.equal((await vault.call('GET', it)).status, expected, it)
    }
  })
})

/** Ids, containers, names and members that read as one thing here and as another there. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stillVault } from '../kit/still-vault.ts'

const BOTH = ['token:create', 'token:read']

describe('an id cannot lead to another token than its own', () => {
  for (const id of [
    '...',
    '__proto__',
    'constructor',
    'caf\u00e9',
    '\u212Belvin',
    'ab c@d.e',
    '01945d00-0000-4000-8000-00000000000A',
  ]) {
    test(JSON.stringify(id), async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: BOTH })
      const made = await vault.call('POST', '/tokens', { key, body: { data: 'x', id } })
      assert.equal(made.status, 201, made.text)
      const { pathname } = new URL(made.headers['location']!)
      assert.equal((await vault.call('GET', pathname, { key })).json()['id'], id)
      for (const other of [id.normalize('NFD'), id.normalize('NFKC'), id.toLowerCase(), `${id} `]) {
        if (other === id) continue
        const path = `/tokens/${encodeURIComponent(other)}`
        assert.equal((await vault.call('GET', path, { key })).status, 404, other)
      }
    })
  }

  for (const id of [
    '..',
    '../../applications',
    'a/b',
    'a%2Fb',
    'a?b',
    'a#b',
    '{{',
    'a}}b',
    'a\u0000b',
    'a\r\nb',
    ' ab',
    '\ufeffab',
  ]) {
    test(`${JSON.stringify(id)} is refused`, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: BOTH })
      const made = await vault.call('POST', '/tokens', { key, body: { data: 'x', id } })
      assert.equal(made.status, 400, made.text)
    })
  }
})

describe('a container cannot be written so that a rule does not see it', () => {
  for (const container of [
    '/pci/../general/',
    '//',
    '/pci//',
    '/pci/%2e%2e/',
    '/pci/high',
    'pci/high/',
    '/pc\u0131/',
    '/\u212Aey/',
    '/pci/\n',
    '/pci/high/\u0000/',
    '/pci/high/ /',
    '/pci\\high/',
  ]) {
    test(`${JSON.stringify(container)} is refused`, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: BOTH })
      const body = { data: 'x', containers: [container] }
      assert.equal((await vault.call('POST', '/tokens', { key, body })).status, 400)
    })
  }

  test('capitals are the same container', async () => {
    const vault = await stillVault()
    const rule = { priority: 1, container: '/Secret/', transform: 'redact', permissions: BOTH }
    const key = await vault.keyFor({ permissions: BOTH, rules: [rule] })
    const body = { data: 'x', mask: '{{ data }}', containers: ['/SECRET/deep/'] }
    const made = await vault.call('POST', '/tokens', { key, body })
    assert.equal(made.status, 201)
    assert.equal(made.json()['data'], undefined)
  })

  test('one more container does not show more of a token', async () => {
    const vault = await stillVault()
    const rules = [
      { priority: 1, container: '/open/', transform: 'reveal', permissions: BOTH },
      { priority: 2, container: '/shut/', transform: 'redact', permissions: BOTH },
    ]
    const key = await vault.keyFor({ rules })
    const body = { data: 'x', containers: ['/open/', '/shut/'] }
    const made = await vault.call('POST', '/tokens', { key, body })
    assert.equal(made.status, 201)
    assert.equal(made.json()['data'], undefined)
  })
})

describe('a member cannot reach the prototype', () => {
  const bodies = [
    '{"__proto__":{"polluted":"yes"}}',
    '{"constructor":{"prototype":{"polluted":"yes"}}}',
    '{"type":"token","data":{"__proto__":{"polluted":1}},"mask":{"__proto__":{"polluted":"{{ data }}"}}}',
    '{"type":"token","data":1,"metadata":{"__proto__":"x","constructor":"y"}}',
    '{"type":"token","data":1,"encryption":{"__proto__":{"polluted":1}}}',
    '{"type":"token","data":1,"__proto__":{"id":"from the prototype","containers":["/x/"]}}',
    '{"type":"card","data":{"number":"4242424242424242","__proto__":{"cvc":"123"}}}',
    '[{"__proto__":[{"__proto__":"x"}]}]',
  ]
  for (const rawBody of bodies) {
    test(rawBody, async () => {
      const vault = await stillVault()
      const key = await vault.keyFor({ permissions: BOTH })
      const before = Object.getOwnPropertyNames(Object.prototype)
      for (const path of ['/tokenize', '/tokens']) {
        const reply = await vault.call('POST', path, { key, rawBody })
        assert.ok(reply.status < 500, reply.text)
        assert.ok(!reply.text.includes('from the prototype'))
      }
      assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), before)
      assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
      const next = await vault.call('POST', '/tokens', { key, body: { data: 'next' } })
      assert.equal(next.json()['type'], 'token')
    })
  }

  test('by the name of a type, a filter, a variable or a query parameter', async () => {
    const vault = await stillVault()
    const key = await vault.keyFor({ permissions: BOTH })
    for (const name of Object.getOwnPropertyNames(Object.prototype)) {
      const answers = [
        await vault.call('POST', '/tokens', { key, body: { type: name, data: 1 } }),
        await vault.call('POST', '/tokens', {
          key,
          body: { data: 1, mask: `{{ data | ${name} }}` },
        }),
      ]
      for (const it of answers) assert.equal(it.status, 400, name)
      const body = { data: {}, mask: `{{ ${name} }}{{ data.${name} }}{{ data['${name}'] }}` }
      assert.equal((await vault.call('POST', '/tokens', { key, body })).json()['data'], '')
      const query = await vault.call('GET', `/permissions?${name}=1&application_type=${name}`, {
        key,
      })
      assert.equal(query.status, 400)
    }
  })
})

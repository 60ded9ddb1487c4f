import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sensitive } from '../../src/base/sensitive.ts'
import { keyringContract } from '../../src/ports/keyring.contract.ts'
import { TransparentKeyring } from './transparent-keyring.ts'

keyringContract('transparent', async (findKeys) => new TransparentKeyring(findKeys))

test('seal() leaves the context and the plaintext readable', async () => {
  const { wrapped } = await new TransparentKeyring(async () => []).create('tenant-a', 0)
  const keys = await new TransparentKeyring(async () => wrapped).open('tenant-a')
  const context = { id: '1', part: 'data', type: 'token', containers: ['/general/'] }
  assert.match(
    Buffer.from(keys.seal(context, new Sensitive('4242'))).toString('latin1'),
    /^\{"context":\["tenant-a","1","data","token",\["\/general\/"\]\],"number":1,"plaintext":"4242"\}/,
  )
})

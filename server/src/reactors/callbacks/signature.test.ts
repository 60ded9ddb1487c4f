import assert from 'node:assert/strict'
import { constants, createPublicKey, verify } from 'node:crypto'
import { test } from 'node:test'
import { testSigningKeys } from '../../../test/kit/signing-key.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { publicKeyOf, publicSignatureOf, signatureOf } from './signature.ts'

const SECRET = new Sensitive('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
const SIGNED = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
}
/** The test vector of the Standard Webhooks reference libraries. */
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

test('signatureOf() is what Standard Webhooks says for its own example', () => {
  assert.equal(signatureOf(SIGNED, [SECRET]), SIGNATURE)
})

test('signatureOf() signs with each secret, in their order', () => {
  const other = new Sensitive('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD')
  const both = signatureOf(SIGNED, [other, SECRET]).split(' ')
  assert.equal(both.length, 2)
  assert.equal(both[1], SIGNATURE)
  assert.notEqual(both[0], SIGNATURE)
})

test('publicSignatureOf() signs what verifies with the public key, and nothing else', async () => {
  const key = new Sensitive(Buffer.from(await testSigningKeys()()).toString('base64'))
  const known = { key: createPublicKey(publicKeyOf(key)), padding: constants.RSA_PKCS1_PSS_PADDING }
  for (const body of ['', 'plain text', '{"a":[2,1],"b":1}']) {
    const signature = Buffer.from(await publicSignatureOf(Buffer.from(body), key), 'base64')
    assert.ok(verify('sha256', Buffer.from(body), known, signature), body)
    assert.ok(!verify('sha256', Buffer.from(`${body} `), known, signature), body)
  }
})

const { subtle } = globalThis.crypto
const { promisify } = require('util')
const crypto = require('crypto')

module.exports = async (req) => {
  const key = await subtle.importKey(
    'raw',
    Buffer.from(req.configuration.KEY, 'hex'),
    'AES-GCM',
    false,
    ['encrypt', 'decrypt'],
  )
  const iv = globalThis.crypto.getRandomValues(new Uint8Array(12))
  const secret = await subtle.encrypt(
    { name: 'AES-GCM', iv },
    key,
    Buffer.from(req.args.card.number),
  )
  const back = Buffer.from(await subtle.decrypt({ name: 'AES-GCM', iv }, key, secret)).toString()
  const derived = await promisify(crypto.scrypt)(req.args.card.number, 'salt', 16)
  const { publicKey } = await promisify(crypto.generateKeyPair)('ec', { namedCurve: 'P-256' })
  return {
    raw: {
      same: back === req.args.card.number,
      derived: derived.toString('hex'),
      curve: publicKey.asymmetricKeyDetails.namedCurve,
    },
  }
}

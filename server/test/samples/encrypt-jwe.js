const crypto = require('crypto')

const base64url = (it) => Buffer.from(it).toString('base64url')

module.exports = async (req) => {
  const header = base64url(JSON.stringify({ alg: 'RSA-OAEP-256', enc: 'A256GCM' }))
  const cek = crypto.randomBytes(32)
  const iv = crypto.randomBytes(12)
  const cipher = crypto.createCipheriv('aes-256-gcm', cek, iv)
  cipher.setAAD(Buffer.from(header))
  const ciphertext = Buffer.concat([cipher.update(JSON.stringify(req.args.card)), cipher.final()])
  const encryptedKey = crypto.publicEncrypt(
    {
      key: req.configuration.PUBLIC_KEY,
      oaepHash: 'sha256',
      padding: crypto.constants.RSA_PKCS1_OAEP_PADDING,
    },
    cek,
  )
  const jwe = [
    header,
    base64url(encryptedKey),
    base64url(iv),
    base64url(ciphertext),
    base64url(cipher.getAuthTag()),
  ]
  return { raw: { jwe: jwe.join('.') } }
}

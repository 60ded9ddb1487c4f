const forge = require('node-forge')

module.exports = async (req) => {
  const cipher = forge.cipher.createCipher('AES-CBC', forge.util.hexToBytes(req.configuration.KEY))
  cipher.start({ iv: forge.util.hexToBytes('00'.repeat(16)) })
  cipher.update(forge.util.createBuffer(req.args.card.number))
  cipher.finish()
  const digest = forge.md.sha1.create().update(req.args.card.number).digest().toHex()
  const key = forge.pki.publicKeyFromPem(req.configuration.PUBLIC_KEY)
  const encrypted = key.encrypt(req.args.card.number, 'RSA-OAEP')
  return { raw: { encrypted: cipher.output.toHex(), digest, length: encrypted.length } }
}

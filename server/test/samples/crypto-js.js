const CryptoJS = require('crypto-js')
const sha512 = require('crypto-js/sha512')

module.exports = async (req) => {
  const mac = CryptoJS.HmacSHA256(req.args.card.number, req.configuration.KEY).toString(
    CryptoJS.enc.Base64,
  )
  const secret = CryptoJS.AES.encrypt(req.args.card.number, req.configuration.KEY).toString()
  const back = CryptoJS.AES.decrypt(secret, req.configuration.KEY).toString(CryptoJS.enc.Utf8)
  return {
    raw: { mac, same: back === req.args.card.number, short: sha512('a').toString().slice(0, 8) },
  }
}

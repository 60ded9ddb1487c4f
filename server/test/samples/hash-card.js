const crypto = require('crypto')

module.exports = async function (req) {
  const { number } = req.args.card
  const hash = crypto
    .createHash('sha256')
    .update(req.configuration.SALT + number)
    .digest('hex')
  return { raw: { hash, last4: number.slice(-4) } }
}

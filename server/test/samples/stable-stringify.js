const stringify = require('json-stable-stringify')
const crypto = require('crypto')

module.exports = async (req) => {
  const canonical = stringify({ z: 1, a: { d: req.args.amount, c: 3 } })
  return {
    raw: { canonical, digest: crypto.createHash('sha256').update(canonical).digest('base64') },
  }
}

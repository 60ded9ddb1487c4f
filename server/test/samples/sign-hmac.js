const { createHmac } = require('crypto')

module.exports = async (req) => {
  const { API_URL, SECRET } = req.configuration
  const body = JSON.stringify({ account: req.args.account, amount: req.args.amount })
  const timestamp = '1700000000'
  const signature = createHmac('sha256', SECRET).update(`${timestamp}.${body}`).digest('base64')
  const response = await fetch(`${API_URL}/signed`, {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      'x-signature': `t=${timestamp},v1=${signature}`,
    },
    body,
  })
  const { signature: received } = await response.json()
  return { raw: { received } }
}

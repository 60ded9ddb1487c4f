const fetch = require('node-fetch')

module.exports = async (req) => {
  const params = new URLSearchParams({ card: req.args.card.number, currency: 'EUR' })
  const response = await fetch(`${req.configuration.API_URL}/form`, {
    method: 'POST',
    body: params,
  })
  const { body } = await response.json()
  return { raw: { type: response.headers.get('content-type'), body } }
}

const axios = require('axios')

module.exports = async (req) => {
  const client = axios.create({
    baseURL: req.configuration.API_URL,
    timeout: 10000,
    headers: { 'X-Api-Key': req.configuration.API_KEY },
  })
  const { data, status } = await client.post('/payments', { pan: req.args.card.number })
  const missing = await client.get('/missing').catch((error) => error.response.status)
  return { raw: { status, sent: JSON.parse(data.body), missing } }
}

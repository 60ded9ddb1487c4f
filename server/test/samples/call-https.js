const https = require('https')

function post(url, payload) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify(payload)
    const request = https.request(
      url,
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      },
      (response) => {
        let text = ''
        response.on('data', (chunk) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }))
      },
    )
    request.on('error', reject)
    request.write(body)
    request.end()
  })
}

module.exports = async (req) => {
  const { status, body } = await post(`${req.configuration.API_URL}/v1/verify`, {
    cvc: req.args.card.cvc,
  })
  return { raw: { status, path: body.path, sent: body.body } }
}

module.exports = async function (req) {
  const { API_URL, API_KEY } = req.configuration
  const response = await fetch(`${API_URL}/charges`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
    body: JSON.stringify({ number: req.args.card.number, amount: req.args.amount }),
  })
  if (!response.ok) throw new Error(`The API answered ${response.status}`)
  const { method, path, authorization, body } = await response.json()
  return {
    raw: { status: response.status, method, path, authorization, amount: JSON.parse(body).amount },
  }
}

const { CustomHttpResponseError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')

module.exports = async (req) => {
  throw new CustomHttpResponseError({
    status: 402,
    headers: { 'X-Decline-Code': 'insufficient_funds' },
    body: { declined: true, last4: req.args.card.number.slice(-4) },
  })
}

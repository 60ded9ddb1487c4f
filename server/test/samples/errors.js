const { AuthenticationError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js')

module.exports = async (req) => {
  if (req.configuration.API_KEY !== 'right')
    throw new AuthenticationError({ api_key: ['is not the right one'] })
  return { raw: {} }
}

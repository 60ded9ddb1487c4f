const {
  BadRequestError,
  ReactorRuntimeError,
} = require('@basis-theory/basistheory-reactor-formulas-sdk-js')

module.exports = async (req) => {
  try {
    if (!req.args.merchant) throw new BadRequestError('merchant is required')
    return { raw: req.args.merchant }
  } catch (error) {
    if (error instanceof BadRequestError) throw error
    throw new ReactorRuntimeError(error)
  }
}

module.exports = async (req) => {
  const gateway = undefined
  return { raw: gateway.charge(req.args.card) }
}

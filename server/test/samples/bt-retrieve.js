module.exports = async (req) => {
  const created = await req.bt.tokens.create({ type: 'token', data: req.args.card.number })
  const token = await req.bt.tokens.retrieve(created.id)
  let missing
  try {
    await req.bt.tokens.retrieve('11111111-1111-4111-8111-111111111111')
  } catch (error) {
    missing = { name: error.name, status: error.status }
  }
  return { raw: { same: token.data === req.args.card.number, missing } }
}

module.exports = async (req) => {
  const tokens = await req.bt.tokenize({
    first_name: { type: 'token', data: 'Ada' },
    card: { type: 'token', data: req.args.card.number },
  })
  return { raw: { first: typeof tokens.first_name.id, card: tokens.card.type } }
}

module.exports = async (req) => {
  const { bt, args } = req
  const token = await bt.tokens.create({
    type: 'token',
    data: { pan: args.card.number },
    metadata: { source: 'reactor' },
    containers: ['/general/'],
  })
  return {
    raw: { id: token.id, type: token.type, createdBy: token.createdBy, metadata: token.metadata },
  }
}

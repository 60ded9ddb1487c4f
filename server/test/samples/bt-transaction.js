module.exports = async (req) => {
  const { bt } = req
  const { id: transactionId } = await bt.transactions.create()
  const one = await bt.tokens.create({ type: 'token', data: 'one' }, { transactionId })
  const two = await bt.tokens.create({ type: 'token', data: 'two' }, { transactionId })
  const before = await bt.tokens.retrieve(one.id).then(
    () => 200,
    (error) => error.status,
  )
  await bt.transactions.commit(transactionId)
  const after = await bt.tokens.retrieve(two.id)
  return { raw: { before, after: after.data } }
}

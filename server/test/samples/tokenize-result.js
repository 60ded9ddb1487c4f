module.exports = async (req) => {
  const { number } = req.args.card
  return {
    raw: { bin: number.slice(0, 6) },
    tokenize: { type: 'token', data: { reversed: number.split('').reverse().join('') } },
  }
}

const { create, convert } = require('xmlbuilder2')

module.exports = async (req) => {
  const { card } = req.args
  const xml = create({ version: '1.0', encoding: 'UTF-8' })
    .ele('Payment', { currency: 'EUR' })
    .ele('Card')
    .ele('Number')
    .txt(card.number)
    .up()
    .ele('Expiry')
    .txt(`${String(card.expiration_month).padStart(2, '0')}/${card.expiration_year}`)
    .up()
    .up()
    .ele('Note')
    .txt('<&>')
    .up()
    .end()
  const back = convert(xml, { format: 'object' })
  return { raw: { xml, number: back.Payment.Card.Number } }
}

const { PDFDocument, StandardFonts, rgb } = require('pdf-lib')

module.exports = async (req) => {
  const document = await PDFDocument.create()
  const font = await document.embedFont(StandardFonts.Helvetica)
  const page = document.addPage([300, 200])
  page.drawText(`Card ending in ${req.args.card.number.slice(-4)}`, {
    x: 20,
    y: 150,
    size: 14,
    font,
    color: rgb(0, 0, 0),
  })
  const base64 = await document.saveAsBase64()
  const again = await PDFDocument.load(base64)
  return { raw: { start: base64.slice(0, 5), pages: again.getPageCount() } }
}

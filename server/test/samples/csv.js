const { Buffer } = require('buffer')

const quote = (value) =>
  /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : String(value)

module.exports = async ({ args }) => {
  const header = ['id', 'name', 'number']
  const lines = args.rows.map((row) => header.map((name) => quote(row[name])).join(','))
  const csv = [header.join(','), ...lines].join('\r\n')
  return { raw: { csv, base64: Buffer.from(csv).toString('base64'), rows: lines.length } }
}

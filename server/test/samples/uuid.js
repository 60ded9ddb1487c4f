const { v4: uuidv4, v5: uuidv5, validate } = require('uuid')

module.exports = async (req) => {
  const id = uuidv4()
  return { raw: { id, valid: validate(id), named: uuidv5(req.args.name, uuidv5.URL) } }
}

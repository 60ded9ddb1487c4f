module.exports = function (req) {
  console.log('called with', req.args.length)
  return { raw: req.args.map((it) => it * 2) }
}

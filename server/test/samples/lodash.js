const _ = require('lodash')
const get = require('lodash/get')

module.exports = async (req) => {
  const totals = _(req.args.orders)
    .groupBy('currency')
    .mapValues((orders) => _.sumBy(orders, 'amount'))
    .value()
  return {
    raw: {
      totals,
      first: get(req.args, 'orders[0].amount'),
      keys: _.mapKeys({ a_b: 1 }, (v, k) => _.camelCase(k)),
    },
  }
}

import { createHash, randomUUID } from 'node:crypto'
import axios from 'axios'
import { v4 } from 'uuid'

const digest = (text) => createHash('md5').update(text).digest('hex')

export default async ({ args, configuration }) => {
  const { data } = await axios.get(`${configuration.API_URL}/me`)
  return {
    raw: {
      path: data.path,
      digest: digest(args.card.number),
      ids: [v4().length, randomUUID().length],
    },
  }
}

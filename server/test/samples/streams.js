const { pipeline } = require('stream/promises')
const { Readable, Transform } = require('stream')
const zlib = require('zlib')

module.exports = async (req) => {
  const upper = new Transform({
    transform(chunk, _, done) {
      done(null, chunk.toString().toUpperCase())
    },
  })
  const chunks = []
  await pipeline(
    Readable.from(req.args.lines),
    upper,
    zlib.createGzip(),
    zlib.createGunzip(),
    async (source) => {
      for await (const chunk of source) chunks.push(chunk)
    },
  )
  return {
    raw: {
      text: Buffer.concat(chunks).toString(),
      brotli: zlib.brotliCompressSync('a'.repeat(1000)).length < 50,
    },
  }
}

/** A block of ISO 9564, format 0: the PIN and the card number, one over the other. */
function pinBlock(pin, number) {
  const left = Buffer.from(`0${pin.length}${pin}`.padEnd(16, 'F'), 'hex')
  const right = Buffer.from(`0000${number.slice(-13, -1)}`, 'hex')
  return Buffer.from(left.map((byte, index) => byte ^ right[index]))
}

module.exports = async (req) => {
  const block = pinBlock(req.args.pin, req.args.card.number)
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, 0xdeadbeef)
  return {
    raw: {
      block: block.toString('hex'),
      base64: block.toString('base64url'),
      bytes: Buffer.from(bytes).readUInt32BE(0),
      text: new TextDecoder().decode(new TextEncoder().encode('žluťoučký')),
    },
  }
}

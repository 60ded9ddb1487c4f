/** Messages of the protocol between a client and PostgreSQL, for proxies between the two. */

export interface ProtocolMessage {
  readonly type: string
  readonly body: Buffer
  readonly whole: Buffer
}

/** Splits one direction of the stream into messages; a client's first has no type, only a length. */
export class Messages {
  #untyped: boolean
  #rest: Buffer = Buffer.alloc(0)

  constructor(untyped: boolean) {
    this.#untyped = untyped
  }

  read(bytes: Buffer): ProtocolMessage[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const messages: ProtocolMessage[] = []
    for (;;) {
      const head = this.#untyped ? 0 : 1
      if (this.#rest.length < head + 4) return messages
      const end = head + this.#rest.readUInt32BE(head)
      if (this.#rest.length < end) return messages
      const whole = this.#rest.subarray(0, end)
      this.#rest = this.#rest.subarray(end)
      this.#untyped = false
      const type = whole.toString('latin1', 0, head)
      messages.push({ type, body: whole.subarray(head + 4), whole })
    }
  }
}

/** Returns the texts at the start of a message, each ended by a zero. */
export function textsIn(body: Buffer): [string, ...string[]] {
  return body.toString('utf8').split('\0') as [string, ...string[]]
}

/** Returns a message of `type`; a client's first has none. */
export function messageOf(type: string, ...fields: readonly (string | Buffer)[]): Buffer {
  const body = Buffer.concat(fields.map((it) => (typeof it === 'string' ? Buffer.from(it) : it)))
  const head = Buffer.alloc(type.length + 4)
  head.write(type, 'latin1')
  head.writeUInt32BE(body.length + 4, type.length)
  return Buffer.concat([head, body])
}

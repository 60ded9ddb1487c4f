import { CONNECTIONS_MAX, FRAME, numberedFrame, WINDOW_BYTES, type Frame } from './frames.ts'
import type { ConnectionTarget } from './messages.ts'

// Taken before any code of a reactor can replace it.
const { stringify } = JSON

/** Events of a connection. */
export interface ConnectionEvents {
  opened(): void
  data(chunk: Buffer): void
  finished(): void
  closed(error: Error | null): void
  /** Nothing more of what came before the close will be read: the run is over. */
  dropped(): void
}

/**
 * Connections to the outside, multiplexed over the pipe to the host.
 *
 * The host allows CONNECTIONS_MAX at a time, and ends a process that asks for more: others wait here. A connection counts until
 * the host says that it is closed.
 */
export class Connections {
  readonly #send: (frame: Buffer) => void
  readonly #open = new Map<number, Connection>()
  /** Connections that wait for others to be closed; the first comes next. */
  readonly #waiting = new Map<Connection, () => void>()
  /** Connections that the host has closed, and that may have something to be read. */
  readonly #unread = new Set<Connection>()
  #last = 0
  #onceClosed: (() => void) | null = null

  constructor(send: (frame: Buffer) => void) {
    this.#send = send
  }

  open(target: ConnectionTarget, events: ConnectionEvents): Connection {
    const number = ++this.#last
    const leave = (): boolean => {
      const waited = this.#waiting.delete(connection)
      this.#unread.delete(connection)
      this.#noteClosed()
      return waited
    }
    const connection = new Connection(number, this.#send, events, leave)
    const opening = numberedFrame(FRAME.open, number, stringify(target))
    this.#waiting.set(connection, () => {
      this.#open.set(number, connection)
      this.#send(opening)
      connection.begin()
    })
    this.#beginNext()
    return connection
  }

  get someOpen(): boolean {
    return this.#open.size + this.#waiting.size > 0
  }

  /** Resolves when no connection is open. Drops what was not read of them, so that no later run finds it. */
  async allClosed(): Promise<void> {
    if (this.someOpen) await new Promise<void>((resolve) => (this.#onceClosed = resolve))
    for (const it of this.#unread) it.drop()
    this.#unread.clear()
  }

  /** Handles a frame; returns whether it concerned a connection. */
  take({ kind, payload }: Frame): boolean {
    if (kind < FRAME.data) return false
    const number = payload.readUInt32BE(0)
    const connection = this.#open.get(number)
    if (kind === FRAME.close || kind === FRAME.refused) {
      this.#open.delete(number)
      if (connection !== undefined) this.#unread.add(connection)
      this.#beginNext()
    }
    connection?.take(kind, payload.subarray(4))
    this.#noteClosed()
    return true
  }

  #noteClosed(): void {
    if (!this.someOpen) this.#onceClosed?.()
  }

  #beginNext(): void {
    for (const [connection, begin] of this.#waiting) {
      if (this.#open.size >= CONNECTIONS_MAX) return
      this.#waiting.delete(connection)
      begin()
    }
  }
}

export class Connection {
  readonly #number: number
  readonly #send: (frame: Buffer) => void
  readonly #events: ConnectionEvents
  /** Stops waiting to be begun; returns whether it waited. */
  readonly #leave: () => boolean
  readonly #waiting: { chunk: Buffer; done: () => void }[] = []
  #begun = false
  #finished = false
  #credit = WINDOW_BYTES
  #over = false

  constructor(
    number: number,
    send: (frame: Buffer) => void,
    events: ConnectionEvents,
    leave: () => boolean,
  ) {
    this.#number = number
    this.#send = send
    this.#events = events
    this.#leave = leave
  }

  /** Sends what was written before the host was asked to open it. */
  begin(): void {
    this.#begun = true
    this.#flush()
    if (this.#finished) this.#sendFrame(FRAME.finish)
  }

  /** Calls `done` once all of `chunk` was sent. */
  write(chunk: Buffer, done: () => void): void {
    this.#waiting.push({ chunk, done })
    this.#flush()
  }

  /** Grants the host credit for as many bytes as were consumed. */
  used(bytes: number): void {
    const amount = Buffer.allocUnsafe(4)
    amount.writeUInt32BE(bytes)
    this.#sendFrame(FRAME.credit, amount)
  }

  finish(): void {
    this.#finished = true
    if (this.#begun) this.#sendFrame(FRAME.finish)
  }

  close(): void {
    if (!this.#leave()) this.#sendFrame(FRAME.close)
    this.#over = true
  }

  drop(): void {
    this.#events.dropped()
  }

  take(kind: number, content: Buffer): void {
    if (this.#over) return
    if (kind === FRAME.opened) this.#events.opened()
    if (kind === FRAME.data) this.#events.data(content)
    if (kind === FRAME.finish) this.#events.finished()
    if (kind === FRAME.credit) {
      this.#credit += content.readUInt32BE(0)
      this.#flush()
    }
    if (kind === FRAME.close || kind === FRAME.refused) {
      this.#over = true
      const reason = content.toString()
      this.#events.closed(reason === '' ? null : new Error(reason))
    }
  }

  #flush(): void {
    while (this.#begun && this.#waiting.length > 0 && this.#credit > 0) {
      const next = this.#waiting[0]!
      const piece = next.chunk.subarray(0, this.#credit)
      this.#credit -= piece.length
      next.chunk = next.chunk.subarray(piece.length)
      this.#sendFrame(FRAME.data, piece)
      if (next.chunk.length > 0) return
      this.#waiting.shift()
      next.done()
    }
  }

  #sendFrame(kind: number, content: Uint8Array = Buffer.alloc(0)): void {
    if (!this.#over) this.#send(numberedFrame(kind, this.#number, content))
  }
}

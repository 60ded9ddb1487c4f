import type { Duplex } from 'node:stream'
import { EgressFailure, EgressLimitReached, EgressRefusal } from '../../ports/egress.ts'
import { FRAME, WINDOW_BYTES } from './guest/frames.ts'

/** Sends frames of one connection to the guest. */
export interface ConnectionSender {
  /** Calls `flushed` once the frame has left this process. */
  send(kind: number, content?: Uint8Array, flushed?: () => void): void
  /** Whether the guest has read enough to be sent more data. */
  ready(): boolean
  /** Called once, when nothing is left of the connection: sends the last frame, and frees its slot. */
  gone(kind: typeof FRAME.close | typeof FRAME.refused, reason: string): void
}

/**
 * One connection of a guest to the outside. It lasts until its dial has settled and its socket is closed, whatever the guest
 * says; closing it aborts the dial.
 *
 * Towards the outside at most one window of bytes is buffered here, in one piece, however many frames it came in. Towards the guest
 * it is the last chunk of the outside, which is paused until that was sent.
 */
export class RelayedConnection {
  readonly #guest: ConnectionSender
  readonly #dialling = new AbortController()
  #outside: Duplex | null = null
  /** What the guest has no room for yet. */
  #held: Buffer | null = null
  /** Bytes that wait for an open connection, or for the write before. */
  #waiting: Buffer | null = null
  #waitingBytes = 0
  #writing = false
  #finished = false
  /** What the outside did before all of its bytes were sent to the guest: it ended, or was closed. */
  #ended = false
  #over = false
  #closed = false
  #reason = ''
  /** Bytes that the guest may still send before it gets more credit. */
  #inward = WINDOW_BYTES
  /** Bytes that were sent to it, of those that have left this process, and that it says it has used. */
  #sent = 0
  #flushed = 0
  #used = 0

  constructor(guest: ConnectionSender) {
    this.#guest = guest
  }

  /** Opens the connection with `dial`, which must reject soon after its signal is aborted. */
  async begin(dial: (signal: AbortSignal) => Promise<Duplex>): Promise<void> {
    let outside: Duplex
    try {
      outside = await dial(this.#dialling.signal)
    } catch (error) {
      if (this.#closed) this.#guest.gone(FRAME.close, this.#reason)
      else this.#guest.gone(FRAME.refused, reasonOf(error))
      this.#closed = true
      return
    }
    outside.on('error', () => this.close('The connection was reset'))
    if (outside.closed) return this.#end()
    outside.once('close', () => {
      // What came before can still be sent, when the guest has room for it.
      if (this.#held === null) this.#end()
      else this.#over = true
    })
    if (this.#closed) {
      outside.destroy()
      return
    }
    this.#outside = outside
    // Not `readable`: what is not read then is kept chunk by chunk, however small they are.
    outside.on('data', (chunk: Buffer) => {
      this.#held = chunk
      this.pump()
    })
    // Also while it is paused, if it was resumed in the same turn.
    outside.once('end', () => {
      if (this.#held === null) this.#finish()
      else this.#ended = true
    })
    this.#guest.send(FRAME.opened)
    this.#writeWaiting()
    if (this.#finished) outside.end()
  }

  /** Handles a frame; throws when it breaks the protocol. After the close, frames are ignored: the guest may not know of it. */
  take(kind: number, content: Buffer): void {
    if (this.#closed) return
    if (kind === FRAME.data) this.#takeData(content)
    else if (kind === FRAME.credit) this.#takeCredit(content.readUInt32BE(0))
    else if (kind === FRAME.finish) {
      this.#finished = true
      this.#writeWaiting()
      this.#outside?.end()
    } else if (kind === FRAME.close) this.close('')
    else throw new Error('A kind that there is not')
  }

  close(reason: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#reason = reason
    this.#waiting = null
    this.#held = null
    this.#dialling.abort()
    this.#outside?.destroy()
    if (this.#over) this.#end()
  }

  /** Tells the guest that nothing more comes. */
  #finish(): void {
    if (!this.#closed) this.#guest.send(FRAME.finish)
  }

  /** Nothing is left of the connection. */
  #end(): void {
    this.#over = false
    this.close('')
    this.#guest.gone(FRAME.close, this.#reason)
  }

  /** Passes on bytes from the outside, as far as the guest has room for them. */
  pump(): void {
    while (this.#held !== null && !this.#closed && this.#room > 0 && this.#guest.ready()) {
      const chunk = this.#held.subarray(0, this.#room)
      this.#held = chunk.length < this.#held.length ? this.#held.subarray(chunk.length) : null
      this.#sent += chunk.length
      this.#guest.send(FRAME.data, chunk, () => {
        this.#flushed += chunk.length
        if (!this.#closed) this.pump()
      })
    }
    if (this.#held !== null) this.#outside?.pause()
    else if (this.#outside?.isPaused() === true) this.#outside.resume()
    if (this.#held !== null || this.#closed) return
    if (this.#ended) this.#finish()
    this.#ended = false
    if (this.#over) this.#end()
  }

  /** Bytes that the guest may be sent now. Bytes that have not left this process count, whatever it says. */
  get #room(): number {
    return WINDOW_BYTES - (this.#sent - Math.min(this.#used, this.#flushed))
  }

  #takeData(content: Buffer): void {
    this.#inward -= content.length
    if (this.#inward < 0 || this.#finished) throw new Error('More than the window allows')
    if (content.length === 0) return
    if (this.#outside !== null && !this.#writing) this.#write(content)
    else {
      this.#waiting ??= Buffer.allocUnsafe(WINDOW_BYTES)
      this.#waitingBytes += content.copy(this.#waiting, this.#waitingBytes)
    }
  }

  #takeCredit(amount: number): void {
    this.#used += amount
    if (this.#used > this.#sent) throw new Error('Credit for bytes that were not sent')
    this.pump()
  }

  #writeWaiting(): void {
    if (this.#waiting === null || this.#outside === null) return
    const chunk = this.#waiting.subarray(0, this.#waitingBytes)
    this.#waiting = null
    this.#waitingBytes = 0
    this.#write(chunk)
  }

  #write(chunk: Buffer): void {
    this.#writing = true
    this.#outside!.write(chunk, (error) => {
      this.#writing = false
      if (error || this.#closed) return
      this.#inward += chunk.length
      const amount = Buffer.allocUnsafe(4)
      amount.writeUInt32BE(chunk.length)
      this.#guest.send(FRAME.credit, amount)
      this.#writeWaiting()
    })
  }
}

/** Fixed messages: the guest must not learn what a name resolves to. */
function reasonOf(error: unknown): string {
  if (error instanceof EgressRefusal) return `Refused by the rule on ${error.rule}`
  if (error instanceof EgressLimitReached) return error.message
  if (error instanceof EgressFailure) return `The destination cannot be used: ${error.fault}`
  return 'The destination cannot be used'
}

import type { Duplex } from 'node:stream'
import {
  REACTOR_FRAMES_OF_OPEN,
  REACTOR_FRAMES_PER_S,
  REACTOR_RESULT_BYTES_MAX,
  REACTOR_STALL_MS_MAX,
  REACTOR_UNREAD_BYTES_MAX,
} from '../../base/limits.ts'
import type { FrameSender } from './broker.ts'
import { FRAME, FrameReader, type Frame } from './guest/frames.ts'

export interface ChannelEvents {
  /** Handles a frame; throws when it breaks the protocol. */
  frame(it: Frame): void
  /** The guest broke the protocol, or does not read. */
  fault(): void
  /** The guest has read what it was sent: more may follow. */
  drained(): void
}

/**
 * The pipe to a guest, with backpressure both ways.
 *
 * While more than REACTOR_UNREAD_BYTES_MAX wait to be read by the guest, nothing is read from it, so that it causes no more; if that
 * lasts, it is at fault. A guest that sends too many frames is read more slowly.
 */
export class GuestChannel implements FrameSender {
  readonly #stream: Duplex
  readonly #events: ChannelEvents
  readonly #reader = new FrameReader(REACTOR_RESULT_BYTES_MAX + 4)
  /** Bytes that the guest has not read, but for input, with FRAME_OVERHEAD_BYTES for each frame. */
  #unread = 0
  #congested = false
  #stall: NodeJS.Timeout | undefined
  /** Frames that may still be handled, and when the last were added. */
  #frames = REACTOR_FRAMES_PER_S
  #filledAt = performance.now()
  #rest: NodeJS.Timeout | undefined

  constructor(stream: Duplex, events: ChannelEvents) {
    this.#stream = stream
    this.#events = events
    stream.on('error', () => {}).on('data', (chunk: Buffer) => this.#read(chunk))
  }

  get congested(): boolean {
    return this.#congested
  }

  /** Sends the input of a run, of any size, which the guest waits for. */
  sendInput(frames: Buffer): void {
    this.#stream.write(frames)
  }

  send(frame: Buffer, flushed?: () => void): void {
    if (this.#stream.destroyed) return
    const cost = frame.length + FRAME_OVERHEAD_BYTES
    this.#unread += cost
    this.#stream.write(frame, (error) => {
      this.#unread -= cost
      if (error) return
      flushed?.()
      if (this.#congested && this.#unread <= REACTOR_UNREAD_BYTES_MAX / 2) this.#relieve()
    })
    if (this.#unread > REACTOR_UNREAD_BYTES_MAX && !this.#congested) this.#congest()
  }

  close(): void {
    clearTimeout(this.#stall)
    clearTimeout(this.#rest)
    this.#stream.destroy()
  }

  #congest(): void {
    this.#congested = true
    this.#stream.pause()
    this.#stall = setTimeout(() => this.#events.fault(), REACTOR_STALL_MS_MAX).unref()
  }

  #relieve(): void {
    this.#congested = false
    clearTimeout(this.#stall)
    this.#readOn()
    this.#events.drained()
  }

  #read(chunk: Buffer): void {
    try {
      const frames = this.#reader.push(chunk)
      for (const it of frames) this.#events.frame(it)
      this.#spend(costOf(frames))
    } catch {
      this.#events.fault()
    }
  }

  /** Rests once the guest has sent more than its share, until it has some again. */
  #spend(frames: number): void {
    this.#frames -= frames
    if (this.#frames >= 0 || this.#stream.destroyed) return
    const now = performance.now()
    const earned = ((now - this.#filledAt) / 1000) * REACTOR_FRAMES_PER_S
    this.#frames = Math.min(REACTOR_FRAMES_PER_S, this.#frames + earned)
    this.#filledAt = now
    if (this.#frames >= 0) return
    this.#stream.pause()
    const ms = (-this.#frames / REACTOR_FRAMES_PER_S) * 1000
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      this.#readOn()
    }, ms).unref()
  }

  #readOn(): void {
    if (!this.#congested && this.#rest === undefined) this.#stream.resume()
  }
}

/** Returns how many frames they count for. Reading a part of one counts, too. */
function costOf(frames: readonly Frame[]): number {
  const opens = frames.filter(({ kind }) => kind === FRAME.open).length
  return Math.max(1, frames.length + opens * (REACTOR_FRAMES_OF_OPEN - 1))
}

/** Memory that a frame takes besides its bytes while it waits to be written. */
const FRAME_OVERHEAD_BYTES = 256

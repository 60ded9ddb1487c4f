import { INLINE_DATA_BYTES_MAX, SHOWN_DATA_BYTES_MAX } from '../base/limits.ts'
import type { FoundToken, StoredToken } from './stored.ts'

/** The requested tokens have more data, together, than the call allows. */
export class TooMuchData extends Error {
  constructor() {
    super('Cannot read tokens: they have more data, together, than is read at once')
  }
}

/** Counts the data of tokens as they are read, so that reading stops at the limit. */
export class DataCount {
  #left: number

  constructor(bytesMax = SHOWN_DATA_BYTES_MAX) {
    this.#left = bytesMax
  }

  /** Bytes that the next token may have. */
  get left(): number {
    return this.#left
  }

  /** Counts one more. Throws TooMuchData; also for null, which stands for data that was too long to be read. */
  add(data: Uint8Array | null): void {
    if (data === null || data.length > this.#left) throw new TooMuchData()
    this.#left -= data.length
  }

  /** Returns `tokens`, each counted, and reads no further than necessary. */
  gather(tokens: Iterable<FoundToken>): StoredToken[] {
    const gathered: StoredToken[] = []
    for (const it of tokens) {
      this.add(it.data)
      gathered.push(it as StoredToken)
    }
    return gathered
  }
}

/** Returns the token as a look-up does, without long data: for stores that have read it already. */
export function withoutLongData(token: FoundToken): FoundToken {
  const { data } = token
  return data === null || data.length <= INLINE_DATA_BYTES_MAX ? token : { ...token, data: null }
}

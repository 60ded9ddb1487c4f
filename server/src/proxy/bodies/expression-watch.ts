import { MULTIPART_PARTS_MAX, PART_HEADER_SECTION_BYTES_MAX } from '../../base/limits.ts'
import { parseContentType, type ContentType } from './content-type.ts'
import { delimiterOf, parseHeaderSection } from './multipart.ts'
import {
  mayHoldExpression,
  mayHoldExpressionInAnyPart,
  mayHoldNonAsciiExpression,
  NON_ASCII_OPENING_BYTES_MAX,
} from './openings.ts'

/**
 * Detects, chunk by chunk, whether a body too long to buffer may contain an expression.
 *
 * Detects every expression that findBodyExpressions() would find, also across chunk borders; it may report more, in a member name for
 * example. Files in a multipart body are not inspected.
 */
export class ExpressionWatch {
  readonly #watch: { readonly see: (chunk: Buffer) => boolean }
  #seen = false

  constructor(contentType: string | undefined) {
    const type = parseContentType(contentType)
    const delimiter = type.kind === 'multipart' ? delimiterOf(type.boundary) : null
    this.#watch = delimiter === null ? new WholeBodyWatch(type) : new MultipartWatch(delimiter)
  }

  /** Returns whether an expression was seen so far. */
  see(chunk: Uint8Array): boolean {
    this.#seen ||= this.#watch.see(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    return this.#seen
  }
}

/** Watches a body that has no parts. */
class WholeBodyWatch {
  readonly #type: ContentType
  #tail: Buffer = Buffer.alloc(0)

  constructor(type: ContentType) {
    this.#type = type
  }

  see(chunk: Buffer): boolean {
    const border = Buffer.concat([this.#tail, chunk.subarray(0, NON_ASCII_OPENING_BYTES_MAX - 1)])
    this.#tail = Buffer.concat([
      this.#tail,
      chunk.subarray(1 - NON_ASCII_OPENING_BYTES_MAX),
    ]).subarray(1 - NON_ASCII_OPENING_BYTES_MAX)
    return mayHoldAnyExpression(border, this.#type) || mayHoldAnyExpression(chunk, this.#type)
  }
}

/** Watches a multipart body: follows the delimiters and inspects the parts that are read. */
class MultipartWatch {
  readonly #delimiter: Buffer
  /** Bytes not decided yet: the header section of a part, or a possible start of a delimiter. */
  #pending: Buffer = Buffer.from('\r\n')
  /** The type of the current part; null between parts. The preamble is inspected. */
  #type: ContentType | null = MULTIPART
  #parts = 0
  /** Whether the multipart structure is invalid; then no reader would see parts, and the rest is inspected as a whole. */
  #lost = false

  constructor(delimiter: string) {
    this.#delimiter = Buffer.from(`\r\n${delimiter}`)
  }

  see(chunk: Buffer): boolean {
    this.#pending = Buffer.concat([this.#pending, chunk])
    for (;;) {
      const seen = this.#type === null ? this.#readHeaderSection() : this.#passBy(this.#type)
      if (seen !== 'more') return seen
    }
  }

  /** Returns whether an expression was seen, or `more` if the buffered bytes begin another part. */
  #passBy(type: ContentType): boolean | 'more' {
    const end = this.#lost ? -1 : this.#pending.indexOf(this.#delimiter)
    const content = end < 0 ? this.#pending : this.#pending.subarray(0, end)
    if (mayHoldAnyExpression(content, type)) return true
    if (end < 0) {
      this.#pending = this.#pending.subarray(
        1 - Math.max(this.#delimiter.length, NON_ASCII_OPENING_BYTES_MAX),
      )
      return false
    }
    this.#pending = this.#pending.subarray(end + this.#delimiter.length)
    this.#type = null
    return 'more'
  }

  #readHeaderSection(): boolean | 'more' {
    const end = this.#pending.indexOf('\r\n\r\n')
    if (end < 0) {
      if (this.#pending.length <= PART_HEADER_SECTION_BYTES_MAX) return false
      return this.#lose()
    }
    const start = this.#pending.indexOf('\r\n')
    const type = parseHeaderSection(
      this.#pending.toString('latin1', start + 2, Math.max(end, start + 2)),
    )
    if (type === null || ++this.#parts > MULTIPART_PARTS_MAX) return this.#lose()
    this.#type = type
    this.#pending = this.#pending.subarray(end + 2)
    return 'more'
  }

  #lose(): 'more' {
    this.#lost = true
    this.#type = MULTIPART
    return 'more'
  }
}

/** The type of a body or a part whose own parts are not known. */
const MULTIPART: ContentType = { kind: 'multipart', charset: null, boundary: '' }

function mayHoldAnyExpression(bytes: Buffer, type: ContentType): boolean {
  if (type.kind === 'multipart') return mayHoldExpressionInAnyPart(bytes)
  return mayHoldExpression(bytes, type.kind) || mayHoldNonAsciiExpression(bytes, type)
}

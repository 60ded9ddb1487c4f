import { positionOf, type StackPosition } from './code-position.ts'

const { stringify } = JSON
const byteLength = Buffer.byteLength.bind(Buffer)
const from = Buffer.from.bind(Buffer) as (
  bytes: ArrayBufferLike,
  at?: number,
  to?: number,
) => Buffer

/**
 * Reduces a thrown value to JSON text with the members that the host reads. Each is converted separately: one that JSON
 * cannot express becomes null without affecting the others. A body of bytes becomes `bytes`, in base64.
 */
export function renderThrown(
  thrown: unknown,
  bytesMax: number,
  position: StackPosition | null = positionOf(thrown),
): string {
  const of = (name: string): string => jsonOf(() => memberOf(thrown, name))
  const body = bytesOf(thrown)
  const rest = `"position":${stringify(position)}}`
  const shown = body === null ? of('body') : 'null'
  const bytes = body === null ? 'null' : `"${body.toString('base64')}"`
  const text = `{"name":${of('name')},"message":${of('message')},"status":${of('status')},"errors":${of('errors')},"headers":${of('headers')},"body":${shown},"bytes":${bytes},${rest}`
  if (byteLength(text) <= bytesMax) return text
  const response = of('name') === '"CustomHttpResponseError"'
  const message = response
    ? stringify(`The custom response is larger than ${bytesMax} bytes`)
    : jsonOf(() => String(memberOf(thrown, 'message')).slice(0, SHORT_CHARS))
  return `{"name":"Error","message":${message},"status":null,"errors":null,"headers":null,"body":null,"bytes":null,${rest}`
}

const SHORT_CHARS = 1_000

function memberOf(thrown: unknown, name: string): unknown {
  if (typeof thrown === 'object' && thrown !== null) return Reflect.get(thrown, name)
  return name === 'message' ? String(thrown) : null
}

/** Returns the bytes of a body that is an ArrayBuffer or a view of one; null for any other body. */
function bytesOf(thrown: unknown): Buffer | null {
  try {
    const body = memberOf(thrown, 'body')
    if (body instanceof ArrayBuffer) return from(body)
    if (!ArrayBuffer.isView(body)) return null
    return from(body.buffer, body.byteOffset, body.byteLength)
  } catch {
    return null
  }
}

function jsonOf(value: () => unknown): string {
  try {
    return stringify(value()) ?? 'null'
  } catch {
    return 'null'
  }
}

import type { Json } from '../../base/json.ts'
import type { Answer } from '../../request/response.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'

/**
 * The result of the code; null for omitted members and those that are null.
 *
 * `raw` is only passed on, so it stays JSON text: five megabytes of values take a tenth of a second to parse. Decision 0090.
 */
export interface Result {
  readonly raw: Buffer | null
  readonly tokenize: Json
}

/** Returns the members of a result that the service uses. */
export function readResult({
  result,
  raw,
  tokenize,
}: Extract<ReactorOutcome, { kind: 'returned' }>): Result {
  const json = result.reveal()
  const shown = raw === null ? null : json.subarray(...raw)
  return {
    raw: shown === null || isNull(shown) ? null : shown,
    tokenize: tokenize === null ? null : (JSON.parse(json.toString('utf8', ...tokenize)) as Json),
  }
}

/** Returns the answer that has the members of an object and `raw`. */
export function answerWithRaw(members: { readonly tokens?: Json }, raw: Buffer | null): Answer {
  if (raw === null) return { status: 200, body: members }
  const text = JSON.stringify(members).slice(0, -1)
  const start = Buffer.from(`${text}${text === '{' ? '' : ','}"raw":`)
  return { status: 200, bytes: Buffer.concat([start, raw, END]) }
}

function isNull(json: Buffer): boolean {
  return json.length === 4 && json.toString('latin1') === 'null'
}

const END = Buffer.from('}')

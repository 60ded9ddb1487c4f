import { isUtf8 } from 'node:buffer'
import { isJsonObject, type Json } from '../../base/json.ts'
import { findJsonFault } from '../../base/json-fault.ts'
import { Sensitive } from '../../base/sensitive.ts'
import { ServiceError } from '../../base/service-error.ts'
import { parseStrictJson } from '../../base/strict-json.ts'
import type { ReactorOutcome } from '../../ports/reactor-runner.ts'

/** A result that has been parsed and written again, so that nothing that a guest wrote is left of its form. */
export interface WrittenResult {
  readonly json: Uint8Array
  /** Where in `json` these members of it are, if it is an object that has them. */
  readonly raw: Span | null
  readonly tokenize: Span | null
}

type Span = readonly [from: number, to: number]

/** It is JSON, but not to be sent: altered by parsing, or past a limit. Or it is not JSON, which no guest of ours sends. */
export type UnreadResult = 'unsendable' | 'malformed'

/** Parses what a guest returned, as strictly as the body of a request. */
export function readResult(returned: Uint8Array): WrittenResult | UnreadResult {
  const bytes = Buffer.from(returned.buffer, returned.byteOffset, returned.length)
  let value: Json
  try {
    value = parseStrictJson(bytes)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const valid = isUtf8(bytes) && findJsonFault(bytes.toString()) === null
    return valid ? 'unsendable' : 'malformed'
  }
  if (!isJsonObject(value)) return { json: written(value), raw: null, tokenize: null }
  const spans: Record<string, Span> = Object.create(null)
  const pieces: Uint8Array[] = []
  let length = 0
  const put = (piece: Uint8Array): void => {
    pieces.push(piece)
    length += piece.length
  }
  for (const name of Object.keys(value)) {
    put(Buffer.from(`${length === 0 ? '{' : ','}${JSON.stringify(name)}:`))
    const from = length
    put(written(value[name]!))
    spans[name] = [from, length]
  }
  put(Buffer.from(length === 0 ? '{}' : '}'))
  const { raw = null, tokenize = null } = spans
  return { json: Buffer.concat(pieces), raw, tokenize }
}

function written(value: Json): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

export function outcomeOf(result: WrittenResult | UnreadResult): ReactorOutcome {
  if (result === 'malformed') return { kind: 'died' }
  if (result === 'unsendable') return { kind: 'unsendable' }
  const { json, raw, tokenize } = result
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length)
  return { kind: 'returned', result: new Sensitive(bytes), raw, tokenize }
}

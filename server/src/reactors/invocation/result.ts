import { isJsonObject, type Json } from '../../base/json.ts'
import { REACTOR_RESULT_BYTES_MAX } from '../../base/limits.ts'
import type { Sensitive } from '../../base/sensitive.ts'
import { ServiceError } from '../../base/service-error.ts'
import { parseStrictJson } from '../../http/strict-json.ts'

/** The result of the code; omitted members are undefined. */
export interface Result {
  readonly raw: Json | undefined
  readonly tokenize: Json | undefined
}

/** Parses the JSON text returned by the code; returns the result, or a description of its flaw. */
export function readResult(result: Sensitive<string>): Result | string {
  const bytes = Buffer.from(result.reveal())
  if (bytes.length > REACTOR_RESULT_BYTES_MAX) return 'What the reactor returned is too large.'
  try {
    const it = parseStrictJson(bytes)
    if (!isJsonObject(it)) return { raw: undefined, tokenize: undefined }
    const { raw, tokenize } = it
    return { raw, tokenize: tokenize ?? undefined }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return 'What the reactor returned is no JSON that could be sent.'
  }
}

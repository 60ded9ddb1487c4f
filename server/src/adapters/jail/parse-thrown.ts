import { JSON_DEPTH_MAX } from '../../base/limits.ts'
import { isJsonObject, type Json } from '../../base/json.ts'
import type { ThrownError } from '../../ports/reactor-runner.ts'

/**
 * Parses what a guest reports as thrown. Throws if it is not a JSON object, or is nested deeper than JSON_DEPTH_MAX.
 */
export function parseThrown(text: string): ThrownError {
  const json: Json = JSON.parse(text)
  if (depthOf(text) > JSON_DEPTH_MAX) throw new Error('Nested too deeply')
  if (!isJsonObject(json)) throw new Error('Not an object')
  const { name = null, message = null, status = null, errors = null } = json
  const { headers = null, body = null } = json
  return { name, message, status, errors, headers, body }
}

function depthOf(text: string): number {
  let [depth, deepest] = [0, 0]
  for (const it of text.replaceAll(STRING, '')) {
    if (it === '{' || it === '[') deepest = Math.max(deepest, ++depth)
    else if (it === '}' || it === ']') depth--
  }
  return deepest
}

const STRING = /"(?:[^"\\]|\\.)*"/g

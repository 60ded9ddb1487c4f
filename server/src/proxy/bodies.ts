export type BodyKind = 'json' | 'opaque'

import type { Json } from '../base/json.ts'
import type { Means } from '../expressions/template.ts'
import { evaluatePlace, findMentions, type Mention } from '../tokens/mentions.ts'

export function bodyKindOf(contentType: string | undefined): BodyKind {
  return /json/.test(contentType ?? '') ? 'json' : 'opaque'
}

export interface ReadBody {
  readonly mentions: readonly Mention[]
  render(means: Means, valueOf: (mention: Mention) => Json): Buffer
}

export function readBody(bytes: Buffer, contentType: string | undefined): ReadBody {
  if (bodyKindOf(contentType) === 'opaque') return { mentions: [], render: () => bytes }
  const found = findMentions(JSON.parse(bytes.toString()) as Json)
  return {
    mentions: found.places.flatMap((it) => it.parts.filter((part) => typeof part !== 'string')),
    render(means, valueOf) {
      for (const it of found.places) it.put(evaluatePlace(it, means, valueOf))
      return Buffer.from(JSON.stringify(found.payload()))
    },
  }
}

export class ExpressionWatch {
  #last = 0

  see(chunk: Uint8Array): boolean {
    const found = (this.#last === 123 && chunk[0] === 123) || Buffer.from(chunk).includes('{{')
    this.#last = chunk.at(-1) ?? this.#last
    return found
  }
}

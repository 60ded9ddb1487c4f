/**
 * The tokenize plan of a payload: which of its values become tokens, and how the answer is assembled.
 *
 * Source: interface.md, Tokenize, rules 1 to 4. Our addition: numbers and booleans become generic tokens as strings do, and
 * null stays null.
 */
import type { Json, JsonObject } from '../base/json.ts'
import { ServiceError } from '../base/service-error.ts'
import { memberPath } from '../request/parse.ts'
import { draftOfValue, parseDraft, type Draft } from './draft.ts'

export interface TokenizePlan {
  /** The values that become tokens, in payload order. */
  readonly leaves: readonly Leaf[]

  /** Returns the payload with leaf `i` replaced by `rendered[i]`. Modifies the original payload. */
  readonly fill: (rendered: readonly Json[]) => Json
}

export interface Leaf {
  /** Whether the leaf is the whole payload; a token request there is answered differently. */
  readonly root: boolean
  /** Whether it is a plain value, answered with an id, rather than a token request. */
  readonly plain: boolean
  /** Parses the leaf. Throws what parseDraft() throws; errors carry paths in the whole payload. */
  readonly draft: (now: number) => Draft
}

/** Finds the leaves of `payload`; throws `payload_tokens_max` if there are more than `tokensMax`. */
export function buildTokenizePlan(payload: Json, tokensMax: number): TokenizePlan {
  const leaves: PlacedLeaf[] = []
  const root: { it: Json } = { it: payload }
  visit(root, 'it', null)
  return {
    leaves,
    fill: (rendered) => {
      // Assigning is safe even for an own `__proto__`: the payload already has it as an own member.
      for (let at = 0; at < leaves.length; at++) leaves[at]!.put(rendered[at]!)
      return root.it
    },
  }

  function visit(
    holder: Json[] | { [key: string]: Json },
    key: string | number,
    up: PayloadPath,
  ): void {
    const value = (holder as JsonObject)[key]!
    if (typeof value === 'object' && value !== null) {
      if (Array.isArray(value)) {
        for (let at = 0; at < value.length; at++) visit(value, at, { up, key: at })
        return
      }
      if (!isTokenRequest(value)) {
        for (const name of Object.keys(value)) visit(value, name, { up, key: name })
        return
      }
    } else if (value === null) return
    if (leaves.length === tokensMax) {
      throw new ServiceError('payload_tokens_max', {
        error: [`At most ${tokensMax} tokens a request: send the rest in another.`],
      })
    }
    leaves.push(new PlacedLeaf(holder, key, value, up))
  }
}

/** The path from the root to a value; rendered only to report an error. */
export type PayloadPath = { readonly up: PayloadPath; readonly key: string | number } | null

class PlacedLeaf implements Leaf {
  readonly #holder: JsonObject
  readonly #key: string | number
  readonly #value: string | number | boolean | JsonObject
  readonly #path: PayloadPath

  constructor(
    holder: object,
    key: string | number,
    value: string | number | boolean | JsonObject,
    path: PayloadPath,
  ) {
    this.#holder = holder as JsonObject
    this.#key = key
    this.#value = value
    this.#path = path
  }

  get root(): boolean {
    return this.#path === null
  }

  get plain(): boolean {
    return typeof this.#value !== 'object'
  }

  draft(now: number): Draft {
    if (typeof this.#value !== 'object') return draftOfValue(this.#value)
    return parseDraft(this.#value, now, (member) => this.#memberPath(member))
  }

  put(rendered: Json): void {
    this.#holder[this.#key] = rendered
  }

  #memberPath(member: string): string {
    const steps: (string | number)[] = []
    for (let at = this.#path; at !== null; at = at.up) steps.push(at.key)
    return steps.length === 0 ? member : `${memberPath(steps.toReversed())}.${member}`
  }
}

function isTokenRequest(value: JsonObject): boolean {
  return typeof value['type'] === 'string' && Object.hasOwn(value, 'data')
}

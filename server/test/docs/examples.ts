import assert from 'node:assert/strict'
import { isUuid } from '../../src/base/id.ts'
import type { Json } from '../../src/base/json.ts'

/**
 * Examples in a document: a request in an `http` fence, and its answer in the next one.
 *
 * A fence holds a first line (`POST /tokenize`, `200 OK`), headers, an empty line, and JSON.
 */
export interface Example {
  /** Of the request, in the document. */
  readonly line: number
  readonly request: Message
  readonly answer: Message
}

interface Message {
  readonly first: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty for none. */
  readonly body: string
}

export function examplesOf(document: string): Example[] {
  const fences = [...document.matchAll(/^```http\n([^]*?)^```$/gm)]
  assert.equal(
    fences.length % 2,
    0,
    'each request in an http fence needs an answer in the next one',
  )
  const examples: Example[] = []
  for (let at = 0; at < fences.length; at += 2) {
    const line = document.slice(0, fences[at]!.index).split('\n').length
    const [request, answer] = [messageOf(fences[at]![1]!), messageOf(fences[at + 1]![1]!)]
    assert.match(request.first, /^[A-Z]+ \//, `line ${line}: begin a request like POST /tokenize`)
    assert.match(answer.first, /^\d{3} /, `line ${line}: begin its answer like 200 OK`)
    examples.push({ line, request, answer })
  }
  return examples
}

function messageOf(fence: string): Message {
  const [, headerSection = '', body = ''] = /^([^]*?)(?:\n\n([^]*))?$/.exec(fence.trimEnd()) ?? []
  const [first = '', ...lines] = headerSection.split('\n')
  const headers = lines.map((it) => {
    const colon = it.indexOf(': ')
    return [it.slice(0, colon).toLowerCase(), it.slice(colon + 2)] as const
  })
  return { first, headers: Object.fromEntries(headers), body }
}

/**
 * Maps the values that differ from vault to vault: each name in the document (an id, a key, a fingerprint) stands
 * for exactly one in the vault, and no two names stand for the same one.
 */
export class Bindings {
  readonly #actual = new Map<string, string>()
  readonly #written = new Map<string, string>()

  /** Says of `text` what it means in the vault. */
  translate(text: string): string {
    return text.replaceAll(/\$[A-Z_]+|[0-9a-f-]{36}/g, (it) => this.#actual.get(it) ?? it)
  }

  bind(written: string, actual: string): void {
    assert.equal(
      this.#actual.get(written) ?? actual,
      actual,
      `${written} was something else before`,
    )
    assert.equal(this.#written.get(actual) ?? written, written, `${actual} had another name before`)
    this.#actual.set(written, actual)
    this.#written.set(actual, written)
  }

  /** Throws unless `actual` is what the document says, but for what differs from vault to vault. */
  match(written: Json | undefined, actual: Json | undefined, member = ''): void {
    if (typeof written === 'string' && typeof actual === 'string') {
      const kind = kindOf(written, member)
      if (kind !== null && kindOf(actual, member) === kind) return this.bind(written, actual)
      assert.equal(actual, this.translate(written), member)
    } else if (Array.isArray(written) && Array.isArray(actual)) {
      assert.equal(actual.length, written.length, member)
      for (const [at, item] of written.entries()) this.match(item, actual[at], `${member}[${at}]`)
    } else if (isMembers(written) && isMembers(actual)) {
      // In the order they are sent in, too.
      assert.deepEqual(Object.keys(actual), Object.keys(written), member)
      for (const name of Object.keys(written)) this.match(written[name], actual[name], name)
    } else assert.deepEqual(actual, written, member)
  }
}

function isMembers(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function kindOf(text: string, member: string): string | null {
  if (isUuid(text)) return 'id'
  // How far the audit log has come depends on every example before.
  if (['id', 'after', 'next'].includes(member) && /^\d+-\d+$/.test(text)) return 'event'
  if (member === 'key' && /^[0-9a-f]{32}$/.test(text)) return 'proxy key'
  if (member === 'key') return text.slice(0, 'key_local_pvt_'.length)
  if (member === 'secret') return text.slice(0, 'whsec_'.length)
  if (member === 'public_key') return text.slice(0, text.indexOf('\n'))
  if (member === 'session_key' || member === 'nonce') return member
  return member === 'fingerprint' ? 'fingerprint' : null
}

/** Reads the fields of a group, each in its own iframe, as one card. */
import type { BrandName } from '../card/brands.ts'
import type { CardFieldName } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import type { FieldForm, Reading } from './field-form.ts'
import { acceptCoordinator, announceField, inviteFields, type Sibling } from './sibling-ports.ts'
import { refusal } from './problems.ts'
import { CallError } from './frame-client.ts'

/** From the coordinator to a field. */
type FieldRequest =
  | { readonly type: 'read'; readonly number: number }
  | { readonly type: 'brand'; readonly brand: BrandName | null }

/** From a field to the coordinator. */
type FieldReply =
  /** Answers the request of the same number. Null if the field is invalid; it then shows the error. */
  | { readonly type: 'reading'; readonly number: number; readonly reading: Reading | null }
  | { readonly type: 'brand'; readonly brand: BrandName | null }

/** How long a field may take to answer, in milliseconds: a page can remove its iframe at any time. */
const READ_MS_MAX = 5000

export class Coordinator {
  readonly #group: string
  #siblings: ReadonlyMap<Document, Sibling> = new Map()
  readonly #pending = new Map<number, (reading: Reading | null) => void>()
  #reads = 0

  constructor(group: string) {
    this.#group = group
  }

  /**
   * Connects to the fields of the group, keeping existing connections, since another call may be reading them. Throws a CallError
   * if one of `expected` cannot be reached.
   */
  join(expected: readonly CardFieldName[]): void {
    const before = this.#siblings
    this.#siblings = inviteFields(this.#group, before)
    for (const [document, { port }] of before) if (!this.#siblings.has(document)) port.close()
    for (const [document, { port }] of this.#siblings) if (!before.has(document)) this.#listen(port)
    const reached = [...this.#siblings.values()].flatMap((it) => it.fields)
    const missing = expected.filter((it) => !reached.includes(it))
    if (missing.length > 0) {
      const names = missing.join(', ')
      throw new CallError(
        refusal(
          'fields_missing',
          `These fields cannot be reached in the page's own frames: ${names}.`,
        ),
      )
    }
  }

  /** Returns what was typed into all fields, or null if any is invalid; those then show their errors. */
  async read(): Promise<Reading | null> {
    const siblings = [...this.#siblings.values()]
    const readings = await Promise.all(siblings.map((it) => this.#readFrom(it.port)))
    const parts = readings.filter((it) => it !== null)
    if (parts.length < readings.length) return null
    const data = Object.assign({}, ...parts.map((it) => it.data)) as FieldData
    const chosenBrand = parts.find((it) => it.chosenBrand !== null)?.chosenBrand ?? null
    return { data, chosenBrand }
  }

  async #readFrom(port: MessagePort): Promise<Reading | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Reading | null>()
    const late = refusal('fields_missing', 'A field does not answer. Was it removed from the page?')
    const timer = setTimeout(() => reject(new CallError(late)), READ_MS_MAX)
    const number = ++this.#reads
    this.#pending.set(number, resolve)
    post(port, { type: 'read', number })
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#pending.delete(number)
    }
  }

  #listen(port: MessagePort): void {
    port.addEventListener('message', ({ data }: MessageEvent<FieldReply>) => {
      if (data.type === 'reading') this.#pending.get(data.number)?.(data.reading)
      // The length of the security code depends on the brand of the number.
      else for (const it of this.#siblings.values()) if (it.port !== port) post(it.port, data)
    })
    port.start()
  }
}

/** Lets a coordinator read `form`. Returns a function to call whenever the brand changes. */
export function joinGroup(
  group: string,
  fields: readonly CardFieldName[],
  form: FieldForm,
): (brand: BrandName | null) => void {
  let coordinator: MessagePort | null = null
  let known: BrandName | null = null
  const tell = (): void => {
    if (coordinator !== null && fields.includes('number')) {
      reply(coordinator, { type: 'brand', brand: known })
    }
  }
  acceptCoordinator((port) => {
    coordinator?.close()
    coordinator = port
    port.addEventListener('message', ({ data }: MessageEvent<FieldRequest>) => {
      if (data.type === 'brand') form.setBrand(data.brand)
      else reply(port, { type: 'reading', number: data.number, reading: form.read() })
    })
    port.start()
    tell()
  })
  announceField(group, fields)
  return (brand) => {
    if (brand === known) return
    known = brand
    tell()
  }
}

function post(port: MessagePort, message: FieldRequest): void {
  port.postMessage(message)
}

function reply(port: MessagePort, message: FieldReply): void {
  port.postMessage(message)
}

/** Reads the fields of a group, each in an iframe of its own, and submits them as one card. */
import type { BrandName } from '../card/brands.ts'
import type { CardFieldName } from '../protocol/messages.ts'
import type { FieldData } from './field-kinds.ts'
import type { FieldForm, Reading } from './field-form.ts'
import { acceptCoordinator, announceField, inviteFields } from './sibling-ports.ts'
import { refusal } from './problems.ts'
import { CallError } from './vault-client.ts'

/** From the coordinator to a field. */
type Request =
  { readonly type: 'read' } | { readonly type: 'brand'; readonly brand: BrandName | null }

/** From a field to the coordinator. */
type Reply =
  /** Null if the field has a flaw, which it shows now. */
  | { readonly type: 'reading'; readonly reading: Reading | null }
  | { readonly type: 'brand'; readonly brand: BrandName | null }

/** Of a field, to answer: a page can remove its iframe at any time. */
const READ_MS_MAX = 5000

export class Coordinator {
  readonly #group: string
  #ports: ReadonlyMap<CardFieldName, MessagePort> = new Map()
  readonly #readings = new Map<MessagePort, (reading: Reading | null) => void>()

  constructor(group: string) {
    this.#group = group
  }

  /** Connects to the fields of the group. Throws if one of `expected` is not among them. */
  join(expected: readonly CardFieldName[]): void {
    for (const port of this.#ports.values()) port.close()
    this.#ports = inviteFields(this.#group)
    for (const port of new Set(this.#ports.values())) this.#listen(port)
    const missing = expected.filter((it) => !this.#ports.has(it))
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

  /** Returns what was typed into all fields, or null: then they show their flaws. */
  async read(): Promise<Reading | null> {
    const ports = [...new Set(this.#ports.values())]
    const readings = await Promise.all(ports.map((it) => this.#readFrom(it)))
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
    this.#readings.set(port, resolve)
    post(port, { type: 'read' })
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#readings.delete(port)
    }
  }

  #listen(port: MessagePort): void {
    port.addEventListener('message', ({ data }: MessageEvent<Reply>) => {
      if (data.type === 'reading') this.#readings.get(port)?.(data.reading)
      // The code's length depends on the brand of the number.
      else for (const it of this.#ports.values()) if (it !== port) post(it, data)
    })
    port.start()
  }
}

/** Lets a coordinator read `form`. Returns a function to call with each change of the brand. */
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
    port.addEventListener('message', ({ data }: MessageEvent<Request>) => {
      if (data.type === 'read') reply(port, { type: 'reading', reading: form.read() })
      else form.setBrand(data.brand)
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

function post(port: MessagePort, message: Request): void {
  port.postMessage(message)
}

function reply(port: MessagePort, message: Reply): void {
  port.postMessage(message)
}

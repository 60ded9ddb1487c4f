import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import type { ValueKind } from '../base/unreadable-value.ts'
import { ConfigError } from '../config.ts'
import type { VerifyPoint } from '../integrity/verify-values.ts'
import { ENVELOPE_TABLES } from '../ports/stored.ts'
import { fileError } from './file-error.ts'

/** The name of a damaged value in reports; `tenant` is null for the root key check. */
export interface DamageName {
  readonly tenant: string | null
  readonly kind: ValueKind
  readonly id: string
}

/** The vault that a run verifies, or the part of it. */
export interface VerifyScope {
  readonly rootKey: string
  readonly tenant: string | undefined
}

interface VerifiedPart {
  readonly values: number
  readonly damaged: readonly DamageName[]
  readonly next?: VerifyPoint
}

const saved = z.object({
  rootKey: z.string(),
  tenant: z.string().optional(),
  values: z.number(),
  damaged: z.array(
    z.object({ tenant: z.string().nullable(), kind: z.custom<ValueKind>(isText), id: z.string() }),
  ),
  next: z
    .object({
      tenantId: z.string(),
      after: z.object({ table: z.enum(ENVELOPE_TABLES), row: z.string() }).nullable(),
    })
    .optional(),
})

/** The progress of a run of `symbolon verify`; saved to a file, if one is given, so that another run can continue. */
export class VerifyProgress {
  readonly #path: string | undefined
  readonly #scope: VerifyScope
  #values: number
  readonly #damaged: DamageName[]
  #next: VerifyPoint | undefined

  /** Reads the file, if it exists. Rejects with ConfigError if it belongs to another vault or tenant. */
  static async open(path: string | undefined, scope: VerifyScope): Promise<VerifyProgress> {
    const text = path === undefined ? null : await textOf(path)
    if (text === null) return new VerifyProgress(path, scope, { values: 0, damaged: [] })
    const before = parse(text)
    if (before === null) {
      throw new ConfigError(`--resume is '${path}', which is not a file that verify wrote.`)
    }
    if (before.rootKey !== scope.rootKey || before.tenant !== scope.tenant) {
      throw new ConfigError(
        `--resume is '${path}', which belongs to another vault or tenant: name another file, or remove it.`,
      )
    }
    return new VerifyProgress(path, scope, before)
  }

  private constructor(
    path: string | undefined,
    scope: VerifyScope,
    { values, damaged, next }: VerifiedPart,
  ) {
    this.#path = path
    this.#scope = scope
    this.#values = values
    this.#damaged = [...damaged]
    this.#next = next
  }

  get values(): number {
    return this.#values
  }

  get damaged(): readonly DamageName[] {
    return this.#damaged
  }

  /** Where to continue; undefined at the beginning. */
  get next(): VerifyPoint | undefined {
    return this.#next
  }

  async add({ values, damaged, next }: VerifiedPart): Promise<void> {
    this.#values += values
    this.#damaged.push(...damaged)
    this.#next = next
    if (this.#path === undefined || next === undefined) return
    const content = { ...this.#scope, values: this.#values, damaged: this.#damaged, next }
    const part = `${this.#path}.part`
    const refuse = fileError('resume', this.#path, 'written')
    await writeFile(part, JSON.stringify(content), { mode: 0o600 }).catch(refuse)
    await rename(part, this.#path).catch(refuse)
  }

  /** Removes the file, so that the next run starts from the beginning. */
  async finish(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true })
  }
}

async function textOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    return fileError('resume', path, 'read')(error)
  }
}

function parse(text: string): (z.infer<typeof saved> & VerifiedPart) | null {
  try {
    return saved.parse(JSON.parse(text)) as z.infer<typeof saved> & VerifiedPart
  } catch {
    return null
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

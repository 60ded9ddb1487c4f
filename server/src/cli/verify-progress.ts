import { constants } from 'node:fs'
import { open, rename, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { z } from 'zod'
import type { ValueKind } from '../base/unreadable-value.ts'
import { ConfigError } from '../config.ts'
import type { VerifyPoint } from '../integrity/verify-values.ts'
import { ENVELOPE_TABLES } from '../ports/stored.ts'
import { fileError } from './file-error.ts'

/** A damaged value as it is reported; `tenant` is null for the root key check. */
export interface DamageName {
  readonly tenant: string | null
  readonly kind: ValueKind
  readonly id: string
}

/** The vault, and the part of it, that a run verifies. */
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

/** How far a run of `symbolon verify` is; kept in a file, if there is one, so that another run can continue. */
export class VerifyProgress {
  readonly #path: string | undefined
  readonly #scope: VerifyScope
  #values: number
  readonly #damaged: DamageName[]
  #next: VerifyPoint | undefined

  /** Reads the file, if it exists. Rejects with ConfigError if it is of another run. */
  static async open(path: string | undefined, scope: VerifyScope): Promise<VerifyProgress> {
    const text = path === undefined ? null : await textOf(path)
    if (text === null) return new VerifyProgress(path, scope, { values: 0, damaged: [] })
    const before = parse(text)
    if (before === null) {
      throw new ConfigError(`--resume is '${path}', which is not a file that verify wrote.`)
    }
    if (before.rootKey !== scope.rootKey || before.tenant !== scope.tenant) {
      throw new ConfigError(
        `--resume is '${path}', which is of another vault or tenant: name another file, or remove it.`,
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
    const part = `${this.#path}.${process.pid}.part`
    const refuse = fileError('resume', this.#path, 'written')
    await rm(part, { force: true })
    await writeFile(part, JSON.stringify(content), { mode: 0o600, flag: 'wx' }).catch(refuse)
    await rename(part, this.#path).catch(refuse)
  }

  /** Removes the file: the next run begins at the start. */
  async finish(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true })
  }
}

/** Null if there is no such file. Another user's file could claim that everything was verified. */
async function textOf(path: string): Promise<string | null> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  let file: FileHandle
  try {
    file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    return fileError('resume', path, 'read')(error)
  }
  try {
    const { mode, uid } = await file.stat()
    const isPrivate = (mode & 0o077) === 0 && uid === process.getuid?.()
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || !isPrivate) {
      throw new ConfigError(
        `--resume is '${path}', which must be a regular file that belongs to the current user and is private to it.`,
      )
    }
    return await file.readFile('utf8')
  } finally {
    await file.close()
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

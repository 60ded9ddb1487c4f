import { constants } from 'node:fs'
import { open, rename, rm, writeFile, type FileHandle } from 'node:fs/promises'
import type { z } from 'zod'
import { ConfigError } from '../config.ts'
import { fileError } from './file-error.ts'

/** The vault that a run verifies, or the part of it. */
export interface VerifyScope {
  readonly rootKey: string
  readonly tenant: string | undefined
}

/** The file named by `--resume`, in which a command saves its progress for the next run. Without a name, saves nothing. */
export class ResumeFile {
  readonly #path: string | undefined
  readonly #scope: VerifyScope

  constructor(path: string | undefined, scope: VerifyScope) {
    this.#path = path
    this.#scope = scope
  }

  /**
   * Returns the progress of the earlier run; null if there is none. Rejects with ConfigError if the file belongs to another
   * command, vault or tenant, or is not private.
   */
  async read<Content>(command: string, content: z.ZodType<Content>): Promise<Content | null> {
    const path = this.#path
    const text = path === undefined ? null : await textOf(path)
    if (text === null) return null
    const saved = parse(text)
    const read = saved === null ? null : contentOf(saved, content)
    if (saved === null || read === null) {
      throw new ConfigError(`--resume is '${path}', which is not a file that ${command} wrote.`)
    }
    if (saved.rootKey !== this.#scope.rootKey || saved.tenant !== this.#scope.tenant) {
      throw new ConfigError(
        `--resume is '${path}', which belongs to another vault or tenant: name another file, or remove it.`,
      )
    }
    return read
  }

  async write(content: object): Promise<void> {
    if (this.#path === undefined) return
    const part = `${this.#path}.${process.pid}.part`
    const refuse = fileError('resume', this.#path, 'written')
    await rm(part, { force: true })
    const text = JSON.stringify({ ...this.#scope, ...content })
    await writeFile(part, text, { mode: 0o600, flag: 'wx' }).catch(refuse)
    await rename(part, this.#path).catch(refuse)
  }

  /** Removes the file, so that the next run starts from the beginning. */
  async remove(): Promise<void> {
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

function parse(text: string): Partial<Record<keyof VerifyScope, unknown>> | null {
  try {
    return JSON.parse(text) as Partial<Record<keyof VerifyScope, unknown>> | null
  } catch {
    return null
  }
}

/** Null if the file is of another command. */
function contentOf<Content>(saved: object, content: z.ZodType<Content>): Content | null {
  try {
    return content.parse(saved)
  } catch {
    return null
  }
}

/**
 * `symbolon callbacks list` and `symbolon callbacks replay`: lists dead letters, and delivers them again.
 *
 * Both call the service that runs with the same settings, like any manager of reactors: so authorization and the audit log
 * apply as usual.
 */
import { readFileSync } from 'node:fs'
import { ConfigError, readConfig } from '../config.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { fileError } from './file-error.ts'

const KEY_FILE = 'api-key-file'

export const callbacksList: RunCommand = async ({ flags, out }) => {
  for await (const it of new ServiceClient(flags).deadLetters()) {
    out(flags['json'] === undefined ? sentenceOf(it) : JSON.stringify(it))
  }
  return 0
}

/** Exits with 1 if one of them did not exist any more. */
export const callbacksReplay: RunCommand = async ({ flags, out }) => {
  const { id, all } = flags
  if ((id === undefined) === (all === undefined)) throw new ConfigError('Pass --id ID or --all.')
  const service = new ServiceClient(flags)
  const ids: string[] = id === undefined ? [] : [id]
  // Reads the whole list before the first replay takes one off it.
  if (all !== undefined) for await (const it of service.deadLetters()) ids.push(it.id)
  let missing = 0
  for (const it of ids) {
    const there = await service.replay(it)
    if (!there) missing++
    out(there ? `${it}: is being delivered` : `${it}: is not there`)
  }
  return missing === 0 ? 0 : 1
}

/** A client of the service that runs with these settings, authenticated by an API key. */
class ServiceClient {
  readonly #url: string
  readonly #apiKey: string

  constructor(flags: CommandInput['flags']) {
    const { host, port } = readConfig(flags)
    this.#url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
    const file = flags[KEY_FILE]
    if (file === undefined) {
      throw new ConfigError(`Pass --${KEY_FILE} FILE, a file that holds a management key.`)
    }
    this.#apiKey = readApiKey(file)
  }

  async *deadLetters(): AsyncIterable<DeadLetter> {
    for (let start: string | undefined = ''; start !== undefined;) {
      const { body } = await this.#ask('GET', `/callbacks?size=100&start=${start}`)
      yield* body.data!
      start = body.pagination!.next
    }
  }

  /** Returns whether the dead letter existed. */
  async replay(id: string): Promise<boolean> {
    const { status } = await this.#ask('POST', `/callbacks/${encodeURIComponent(id)}/replay`)
    return status === 202
  }

  /** Throws the service's error, unless the call succeeded or there is no such callback. */
  async #ask(
    method: 'GET' | 'POST',
    path: string,
  ): Promise<{ readonly status: number; readonly body: Answered }> {
    const headers = { 'bt-api-key': this.#apiKey }
    const reply = await fetch(this.#url + path, { method, headers }).catch((error: Error) => {
      throw new Error(`No service answers at ${this.#url}: ${reasonOf(error)}`)
    })
    const text = await reply.text()
    const body = this.#parse(text)
    if (!reply.ok && body.code !== 'callback_not_found') throw new Error(body.detail)
    return { status: reply.status, body }
  }

  #parse(text: string): Answered {
    try {
      return (text === '' ? {} : JSON.parse(text)) as Answered
    } catch {
      throw new Error(
        `What answers at ${this.#url} is another service: say where Symbolon does with --host and --port`,
      )
    }
  }
}

/**
 * A file rather than an argument, because every user on the machine can read arguments. Errors never include the content,
 * since a wrong file name may lead to another secret.
 */
function readApiKey(file: string): string {
  const key = readKeyFile(file).trim()
  if (/^[!-~]+$/.test(key)) return key
  throw new ConfigError(`--${KEY_FILE} is '${file}', but must be a file with one key and no more.`)
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    return fileError(KEY_FILE, file, 'read')(error)
  }
}

/** Returns the system's error; `fetch` itself only reports that it failed. */
function reasonOf({ cause, message }: Error): string {
  const { code, message: why } = (cause ?? {}) as Partial<NodeJS.ErrnoException>
  if (code === 'ECONNREFUSED')
    return 'nothing listens there; say where it does with --host and --port'
  return code ?? why ?? message
}

/** The relevant part of the service's answer: a page, or an error. */
interface Answered {
  readonly pagination?: { readonly next?: string }
  readonly data?: readonly DeadLetter[]
  readonly code?: string
  readonly detail?: string
}

interface DeadLetter {
  readonly id: string
  readonly destination: string
  readonly failure: string
  readonly attempts: number
  readonly created_at: string
}

function sentenceOf({ id, destination, failure, attempts, created_at: made }: DeadLetter): string {
  return `${id}  ${made}  ${destination}  ${failure}, ${attempts} attempts`
}

/**
 * The canary flow: random payloads through a whole vault on disk, and then a search of everything
 * the vault wrote.
 *
 * Every payload carries canaries in its secret parts. A valid payload is tokenized and must read back
 * unchanged; an invalid one must be refused; nothing may fail. Afterwards no canary may stand
 * in a log line, an error, an answer that shows masks, or a file of the store, in whatever form; nor, where that is
 * a database, in its rows, its log or a file of its own.
 *
 * Run by itself it takes the number of payloads, a seed and a store: `node test/flows/canary.ts 100000 42 postgres`.
 */
import * as fc from '../kit/fast-check.ts'
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { setUp } from '../../src/access/applications/set-up.ts'
import { SystemLog } from '../../src/adapters/system/system-log.ts'
import { createApp } from '../../src/app.ts'
import {
  CALLBACK_PAUSE_MS,
  JOB_STORAGE_BYTES_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTIONS_OPEN_MAX,
} from '../../src/base/limits.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import type { World } from '../../src/ports/world.ts'
import { canaryOf, findTrace, tracesOf, type Canary } from '../kit/canary.ts'
import { invalidBody, invalidPayload, secretText, validPayload } from '../kit/payloads.ts'
import { openPlace, type PlaceName, type SearchedPlace } from '../kit/searched-place.ts'
import { SEED } from '../kit/seed.ts'
import { NO_FIELD_BUILDS } from '../../src/fields/field-builds.ts'

export interface CanaryReport {
  readonly seed: number
  readonly store: PlaceName
  readonly payloads: number
  readonly tokens: number
  readonly refusals: number
  /** How often all files were looked through. */
  readonly looks: number
  readonly seconds: number
}

export interface CanaryOptions {
  readonly payloads: number
  readonly seed: number
  /** Where the vault keeps its data; `sqlite` unless given. */
  readonly store?: PlaceName
  /** Replaces parts of the world, for example by ones that leak. */
  readonly change?: (world: World) => World
  /** Called between batches. */
  readonly progress?: (done: number) => void
}

/** Rejects with the canaries found; the same seed reproduces them. */
export async function runCanary(options: CanaryOptions): Promise<CanaryReport> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-canary-'))
  const place = await openPlace(options.store ?? 'sqlite', folder)
  try {
    return await runIn(folder, place, options)
  } catch (cause) {
    throw new Error(`With seed ${options.seed}: ${(cause as Error).message}`, { cause })
  } finally {
    await place.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runIn(
  folder: string,
  place: SearchedPlace,
  options: CanaryOptions,
): Promise<CanaryReport> {
  const { payloads, seed, store = 'sqlite', change, progress } = options
  const started = performance.now()
  const canary = canaryOf(seed)
  const traces = tracesOf(canary)
  const vault = await openVault(folder, place, change ?? ((world) => world))
  const tally = { tokens: 0, refusals: 0, looks: 0 }
  const answers: string[] = []
  const call: SendRequest = async (request) => {
    const reply = await vault.call(request)
    answers.push(reply.text, JSON.stringify(reply.headers))
    return reply
  }

  try {
    for (let done = 0; done < payloads; done += BATCH) {
      const works = worksOf(canary, seed + done, Math.min(BATCH, payloads - done))
      await inParallel(works, (work) => work(call, vault, tally))
      lookAt(answers)
      // The write-ahead log is overwritten repeatedly, so search it along the way.
      if (done % (BATCH * LOOK_EVERY) === 0) await lookThrough()
      progress?.(done + works.length)
    }
    await lookThrough()
  } finally {
    await vault.close()
  }
  await lookThrough()
  const found = await place.find(NOT_SECRET)
  // Of a database, the files with a number for a name hold it as well.
  assert.deepEqual(
    found.filter((it) => !/^[0-9A-F]+: /.test(it)).toSorted(),
    NOT_SECRET_FOUND[store],
  )
  const seconds = Math.round((performance.now() - started) / 100) / 10
  return { seed, store, payloads, ...tally, seconds }

  function lookAt(texts: string[]): void {
    const found = findTrace(traces, Buffer.from(texts.join('\n')))
    if (found !== null) throw new Error(`an answer holds a canary (${found})`)
    texts.length = 0
  }

  async function lookThrough(): Promise<void> {
    tally.looks += 1
    const found = await place.find(traces)
    if (found.length > 0) throw new Error(`a canary is in ${found.join(', ')}`)
  }
}

/** Text known to be in the files: finding it proves that the search works. */
const NOT_SECRET = [
  { form: 'the name of an application', bytes: Buffer.from('an application that is no secret') },
  { form: 'a line for a request', bytes: Buffer.from('"route":"/tokenize"') },
]
const NOT_SECRET_FOUND = {
  sqlite: ['log: a line for a request', 'symbolon.db: the name of an application'],
  postgres: ['log: a line for a request', 'table applications: the name of an application'],
}

const BATCH = 500
const LOOK_EVERY = 20
const WORKERS = 64

interface CanaryRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly key?: string
  readonly body?: Json | Buffer
  readonly idempotencyKey?: string
}

interface CanaryReply {
  readonly status: number
  readonly text: string
  readonly headers: unknown
}

type SendRequest = (request: CanaryRequest) => Promise<CanaryReply>
type CanaryTally = { tokens: number; refusals: number }
type Work = (call: SendRequest, vault: Vault, tally: CanaryTally) => Promise<void>

/**
 * Returns `count` things to do, the same for the same seed: most make tokens, some are refused. They
 * begin with a secret in each place where none belongs.
 */
function worksOf(canary: Canary, seed: number, count: number): Work[] {
  const place = fc.constantFrom(...MISPLACED)
  const work = fc.oneof(
    { weight: 16, arbitrary: validPayload(canary).map(makeAndRead) },
    { weight: 3, arbitrary: invalidPayload(canary).map((body) => refuse(400, { body })) },
    { weight: 1, arbitrary: invalidBody(canary).map((body) => refuse(400, { body })) },
    { weight: 1, arbitrary: fc.tuple(place, secretText(canary)).map(([put, it]) => put(it)) },
  )
  const [secret] = fc.sample(secretText(canary), { numRuns: 1, seed })
  const misplaced = MISPLACED.slice(0, count).map((put) => put(secret!))
  return [...misplaced, ...fc.sample(work, { numRuns: count - misplaced.length, seed })]
}

/** Tokenizes a payload, reads every token of it, and compares. */
function makeAndRead(payload: Json): Work {
  return async (call, vault, tally) => {
    const { key } = vault
    const made = await call({ method: 'POST', path: '/tokenize', key, body: payload })
    assert.equal(made.status, 200, describe(payload, made))
    const pairs: [id: string, data: Json][] = []
    pairUp(payload, JSON.parse(made.text) as Json, pairs)
    for (const [id, data] of pairs) {
      const path = `/tokens/${encodeURIComponent(id)}`
      // Not through `call`: this answer is where the plaintext belongs.
      const read = await vault.call({ method: 'GET', path, key: vault.revealKey })
      assert.equal(read.status, 200, describe(payload, read))
      const shown = (JSON.parse(read.text) as JsonObject)['data']
      if (!isDeepStrictEqual(shown, JSON.parse(JSON.stringify(data)))) {
        throw new Error(`what came back is not what was sent: ${describe(payload, read)}`)
      }
    }
    tally.tokens += pairs.length
  }
}

/** Walks payload and answer together and collects which id stands for which data. */
function pairUp(payload: Json, answer: Json, pairs: [id: string, data: Json][]): void {
  if (payload === null) assert.equal(answer, null)
  else if (Array.isArray(payload)) {
    assert.ok(Array.isArray(answer) && answer.length === payload.length)
    for (const [at, it] of payload.entries()) pairUp(it, answer[at]!, pairs)
  } else if (!isJsonObject(payload)) pairs.push([answer as string, payload])
  else if (typeof payload['type'] === 'string') {
    pairs.push([(answer as JsonObject)['id'] as string, payload['data']!])
  } else {
    assert.ok(isJsonObject(answer))
    assert.deepEqual(Object.keys(answer), Object.keys(payload))
    for (const name of Object.keys(payload)) pairUp(payload[name]!, answer[name]!, pairs)
  }
}

/** Sends a request that must be refused with `status`. */
function refuse(status: number, request: Partial<CanaryRequest>): Work {
  return async (call, { key }, tally) => {
    const reply = await call({ method: 'POST', path: '/tokenize', key, ...request })
    assert.equal(reply.status, status, describe(request as JsonObject, reply))
    tally.refusals += 1
  }
}

/** A secret where none belongs: in a path, a query, a header, or sent by those who may not. */
const MISPLACED: readonly ((secret: string) => Work)[] = [
  (secret) => refuse(404, { method: 'GET', path: `/tokens/${encodeURIComponent(secret)}` }),
  (secret) => refuse(404, { method: 'GET', path: `/${encodeURIComponent(secret)}` }),
  (secret) => {
    const path = `/tokenize?card=${encodeURIComponent(secret)}`
    return refuse(400, { path, body: { type: 'card', data: secret } })
  },
  (secret) => refuse(401, { key: encodeURIComponent(secret), body: tokenOf(secret) }),
  (secret) => async (call, vault, tally) => {
    await refuse(403, { key: vault.elsewhereKey, body: tokenOf(secret) })(call, vault, tally)
  },
  (secret) =>
    async (call, { key }, tally) => {
      const idempotencyKey = encodeURIComponent(secret).slice(0, 300)
      const request = { path: '/tokens', key, idempotencyKey, body: tokenOf(secret) } as const
      const first = await call({ method: 'POST', ...request })
      const again = await call({ method: 'POST', ...request })
      assert.equal(first.status, 201, first.text)
      assert.equal(again.text, first.text, 'the repeated request got another answer')
      tally.tokens += 1
    },
]

function tokenOf(secret: string): Json {
  return { type: 'token', data: secret }
}

interface Vault {
  readonly call: SendRequest
  readonly key: string
  readonly revealKey: string
  /** May create tokens, but not where these go. */
  readonly elsewhereKey: string
  readonly close: () => Promise<void>
}

/** The service as it is run, but for the socket, and the log, which goes to a file of the folder. */
async function openVault(
  folder: string,
  place: SearchedPlace,
  change: (world: World) => World,
): Promise<Vault> {
  const descriptor = openSync(join(folder, 'log'), 'a')
  const log = new SystemLog({ level: 'info', descriptor })
  const config = readConfig({ ...place.settings, 'log-level': 'silent' }, {})
  const opened = await openWorld(config, { onFault: (error) => log.error('store_fault', error) })
  const world = change({ ...opened.world, log })
  const first = await setUp(world, opened.keyProvider, { name: 'canary', plan: 'enterprise' })
  const app = createApp(world, {
    version: '0.0.0',
    fieldBuilds: NO_FIELD_BUILDS,
    corsOrigins: '*',
    publicAddress: { url: null, fieldsUrl: null, trustedProxies: [] },
    requestLimits: { perKey: null, perAddress: null },
    callbackRetryBaseMs: CALLBACK_PAUSE_MS,
    tokens: { tokensMax: 10_000, privacyShown: false },
    transactions: {
      lifetimeMs: TRANSACTION_LIFETIME_MS,
      openMax: TRANSACTIONS_OPEN_MAX,
      publicOpenMax: TRANSACTIONS_OPEN_MAX,
    },
    proxy: { timeoutMs: 25_000 },
    reactors: {
      configurationRequired: true,
      jobStorageBytesMax: JOB_STORAGE_BYTES_MAX,
      responseHeaders: { allowed: [], origin: null },
    },
  })
  const rule = { priority: 1, container: '/', transform: 'mask' }
  return {
    call,
    key: await keyFor({ ...rule, permissions: ['token:create', 'token:read'] }),
    revealKey: await keyFor({ ...rule, transform: 'reveal', permissions: ['token:read'] }),
    elsewhereKey: await keyFor({ ...rule, container: '/else/', permissions: ['token:create'] }),
    close: async () => {
      await app.close()
      await opened.close()
      await log.close()
      closeSync(descriptor)
    },
  }

  async function call({
    method,
    path,
    key,
    body,
    idempotencyKey,
  }: CanaryRequest): Promise<CanaryReply> {
    const asked = {
      method,
      url: path,
      headers: {
        ...(key === undefined ? {} : { 'bt-api-key': key }),
        ...(idempotencyKey === undefined ? {} : { 'bt-idempotency-key': idempotencyKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined
        ? {}
        : { payload: Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
    }
    let reply = await app.inject(asked)
    // On a busy machine a write may not be confirmed in time, and its caller is told to repeat it.
    for (let again = 0; reply.statusCode === 503 && again < BUSY_ATTEMPTS; again++) {
      reply = await app.inject(asked)
    }
    assert.ok(reply.statusCode < 500, `It failed: ${reply.statusCode} for ${method} ${path}`)
    return { status: reply.statusCode, text: reply.payload, headers: reply.headers }
  }

  async function keyFor(rule: JsonObject): Promise<string> {
    const body = { name: 'an application that is no secret', type: 'private', rules: [rule] }
    const reply = await call({ method: 'POST', path: '/applications', key: first.apiKey, body })
    return (JSON.parse(reply.text) as JsonObject)['key'] as string
  }
}

const BUSY_ATTEMPTS = 5

/** Does the works, so many at a time; after one has failed no other is begun. */
async function inParallel(
  works: readonly Work[],
  run: (work: Work) => Promise<void>,
): Promise<void> {
  const rest = works.values()
  const workers = Array.from({ length: WORKERS }, async () => {
    try {
      for (const work of rest) await run(work)
    } catch (error) {
      rest.return?.()
      throw error
    }
  })
  const failed = (await Promise.allSettled(workers)).find((it) => it.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

function describe(payload: unknown, reply: CanaryReply): string {
  return `${reply.status} ${reply.text.slice(0, 500)} for ${JSON.stringify(payload).slice(0, 2000)}`
}

if (import.meta.main) {
  const [payloads = '100000', seed = String(SEED), store = 'sqlite'] = process.argv.slice(2)
  const say = (line: string): void => void process.stdout.write(`${line}\n`)
  say(`Canary: ${payloads} payloads, seed ${seed}, ${store}`)
  if (store !== 'sqlite' && store !== 'postgres') throw new Error(`There is no store ${store}`)
  const report = await runCanary({
    payloads: Number(payloads),
    seed: Number(seed),
    store,
    progress: (done) => {
      if (done % 10_000 === 0) say(`  ${done}`)
    },
  })
  say(`No canary got out. ${JSON.stringify(report)}`)
}

/**
 * Sends requests generated from the interface document to a whole vault, and throws at the first response that the document does
 * not describe, and at any failure of the service.
 */
import { diceOf, type Dice } from '../../crash/dice.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { World } from '../../src/ports/world.ts'
import { STILL_BUILDS } from '../kit/still-builds.ts'
import type { StillAnswer } from '../kit/still-egress.ts'
import type { Ran } from '../kit/still-runner.ts'
import { returned, threw } from '../kit/still-runner.ts'
import { stillVault, type Reply, type StillVault } from '../kit/still-vault.ts'
import type { StillWorld } from '../kit/still-world.ts'
import type { StoreName } from '../kit/test-store.ts'
import { Cast } from './cast.ts'
import { operationsOf, reachedPath, type ApiDocument, type PlacedOperation } from './document.ts'
import { requestFor, type GeneratedRequest } from './requests.ts'
import { codeIn, isForeign, ResponseCheck } from './response-check.ts'
import { pick } from './values.ts'
import { wireClient } from './wire-client.ts'

export interface DescribedOptions {
  readonly count: number
  readonly seed: number
  /** In place of the store that the run uses. */
  readonly store?: StoreName
  /** Replaces parts of the world, for example by ones that fail. */
  readonly change?: (world: StillWorld) => World
  /** Replaces the document that responses are held to, for example by one that lacks something. */
  readonly describe?: (document: ApiDocument) => ApiDocument
}

export interface DescribedTally {
  /** Responses by their status. */
  readonly statuses: Readonly<Record<number, number>>
  /** Requests that a use case carried out. */
  readonly successful: number
  /** 5xx that destinations and the code of reactors were made to cause; one of the service itself is thrown. */
  readonly failuresOfOthers: number
  /** Operations that never succeeded. */
  readonly unsuccessful: readonly string[]
  /** Codes of errors that were answered. */
  readonly codes: readonly string[]
}

/** Requests of one tenant; the next ones are another's. */
const ROUND = 600

export async function sendDescribed(options: DescribedOptions): Promise<DescribedTally> {
  const { count, seed, store, change, describe = (it) => it } = options
  const vault = await stillVault({
    privacyShown: true,
    // A callback is given up after ten attempts: here within seconds.
    callbackRetryBaseMs: 1,
    fieldBuilds: STILL_BUILDS,
    ...(store !== undefined && { store }),
    ...(change !== undefined && { change }),
  })
  const client = await wireClient(vault)
  try {
    misbehave(vault, diceOf(seed, -1))
    const document = (await vault.call('GET', '/openapi.json')).json() as unknown as ApiDocument
    const operations = operationsOf(document)
    const check = new ResponseCheck(describe(document))
    const tally = new Tally(operations)
    const casts: Cast[] = []
    for (let n = 0, last = -ROUND; n < count; n++) {
      const dice = diceOf(seed, n)
      const cast = casts.at(-1)
      if (cast === undefined || n - last >= ROUND || (await isOver(vault, cast, n))) {
        const plan = casts.length % 4 === 3 ? 'standard' : 'enterprise'
        const others = casts.slice(-2).flatMap((it) => [it.keys.management, it.keys.private])
        casts.push(await Cast.open(vault, `tenant ${casts.length}`, plan, others))
        last = n
      }
      const current = casts.at(-1)!
      const request = requestFor(operationFor(operations, dice), document, current, dice)
      const reply = await client.send(request)
      const found = check.finding(request, reply) ?? failureOf(request, reply)
      if (found !== null) throw new UndescribedResponse(n, request, reply, found)
      tally.add(request, reply)
      const path = reachedPath(document, request)
      if (path !== undefined && request.method !== 'HEAD')
        current.learn(path, request.target, reply)
      if (n % 10 === 0) await runJobs(vault)
    }
    return tally.result()
  } finally {
    client.close()
    await vault.close()
  }
}

class UndescribedResponse extends Error {
  override readonly name = 'UndescribedResponse'
  constructor(
    n: number,
    { method, target, headers, body }: GeneratedRequest,
    reply: Reply,
    found: string,
  ) {
    const sent = `${method} ${target.slice(0, 300)} ${JSON.stringify(headers).slice(0, 600)} ${String(body).slice(0, 600)}`
    const got = `${reply.status} ${JSON.stringify(reply.headers)} ${reply.text.slice(0, 800)}`
    super(`Request ${n}: ${found}\n  ${sent}\n  ${got}`)
  }
}

/** What makes or uses things comes more often, what ends a tenant rarely. */
function operationFor(operations: readonly PlacedOperation[], dice: Dice): PlacedOperation {
  for (;;) {
    const operation = pick(dice, operations)
    const { method, path } = operation
    if (method === 'DELETE' && path === '/tenants/self' && dice() < 0.9) continue
    if (method !== 'POST' && dice() < 0.35) continue
    return operation
  }
}

/** The tenant may be gone, or its keys. */
async function isOver(vault: StillVault, { keys }: Cast, n: number): Promise<boolean> {
  if (n % 20 !== 0) return false
  const reply = await vault.call('GET', '/applications/key', { key: keys.management })
  return reply.status !== 200
}

/** A failure of the service. Destinations and code are made to fail, and their responses say whose they are. */
function failureOf({ method, operation }: GeneratedRequest, reply: Reply): string | null {
  if (reply.status < 500 || isForeign(reply)) return null
  const code = codeIn(reply.text)
  // Without a body nothing says that the result is an error of the code.
  const unnamed = method === 'HEAD' && operation.path.includes('/results/')
  const others = /^(?:reactor|destination)_/.test(code ?? '') || unnamed
  return others ? null : `the service failed with ${reply.status}`
}

class Tally {
  readonly #statuses: Record<number, number> = {}
  readonly #codes = new Set<string>()
  readonly #unsuccessful: Set<string>

  constructor(operations: readonly PlacedOperation[]) {
    const succeed = operations.filter((it) =>
      Object.keys(it.responses).some((status) => status < '3'),
    )
    this.#unsuccessful = new Set(succeed.map(nameOf))
  }

  add({ operation, method }: GeneratedRequest, { status, text }: Reply): void {
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    if (status < 300 && method === operation.method) this.#unsuccessful.delete(nameOf(operation))
    const code = codeIn(text)
    if (status >= 400 && code !== undefined) this.#codes.add(code)
  }

  #count(matches: (status: number) => boolean): number {
    const counted = Object.entries(this.#statuses).filter(([status]) => matches(Number(status)))
    return counted.reduce((sum, [, count]) => sum + count, 0)
  }

  result(): DescribedTally {
    return {
      statuses: this.#statuses,
      successful: this.#count((status) => status < 300),
      failuresOfOthers: this.#count((status) => status >= 500),
      unsuccessful: [...this.#unsuccessful],
      codes: [...this.#codes].toSorted(),
    }
  }
}

function nameOf({ method, path }: PlacedOperation): string {
  return `${method} ${path}`
}

async function runJobs(vault: StillVault): Promise<void> {
  vault.world.clock.pass(1_000)
  for (const { jobs } of vault.servers.apps) {
    await jobs.poll()
    await jobs.settled()
  }
}

/** Lets destinations and code end in every way there is. */
function misbehave({ world: { egress, runner } }: StillVault, dice: Dice): void {
  egress.refuse = ({ protocol, host }) => {
    if (protocol !== 'https:') return 'scheme'
    return host === 'gone.example' ? 'unresolved' : null
  }
  egress.reply = ({ url }) =>
    url.includes('receiver') ? { status: 500 } : pick<() => StillAnswer>(dice, ANSWERS)()
  runner.behave = (ran) => pick(dice, ENDS)(ran)
}

const ANSWERS: readonly (() => StillAnswer)[] = [
  () => ({ status: 200, reason: 'OK', headers: ['Content-Type', 'text/plain'], chunks: ['done'] }),
  () => ({ status: 200, reason: 'OK', headers: ['X-Theirs', '1'], chunks: ['{"a":', '1}'] }),
  () => ({ status: 204, reason: 'No Content' }),
  () => ({ status: 404, reason: 'Not Found', chunks: ['{"title":"theirs"}'] }),
  () => ({ status: 500, reason: 'Theirs' }),
  () => ({ fault: 'unreachable' }),
  () => ({ fault: 'tls' }),
  () => ({ fault: 'reset' }),
  () => ({ fault: 'answer-invalid' }),
  () => ({ fault: 'timeout' }),
]

const ENDS: readonly ((ran: Ran) => ReturnType<typeof returned>)[] = [
  ({ args }) => returned({ raw: args }),
  ({ args }) => returned({ raw: args, tokenize: args }),
  ({ args }) => returned({ tokenize: args }),
  () => returned(null),
  () => threw({ name: 'Error', message: 'no' }),
  () => threw({ name: 'InvalidPaymentMethodError', errors: { card: ['expired'] } }),
  () => threw({ name: 'RateLimitError', message: 'later' }),
  () => threw({ name: 'BasisTheoryReactorError', status: 418, message: 'a teapot' }),
  () => threw(CUSTOM),
  () => threw({ ...CUSTOM, body: null, bytes: 'AP+A' }),
  () => ({ kind: 'no-function', message: 'SyntaxError', position: null }),
  () => ({ kind: 'timed-out' }),
  () => ({ kind: 'out-of-memory' }),
  () => ({ kind: 'died' }),
]

/** The header says that code wrote it. */
const CUSTOM: JsonObject = {
  name: 'CustomHttpResponseError',
  status: 207,
  headers: { 'X-From-Code': '1', 'Content-Type': 'text/csv' },
  body: 'a,b',
}

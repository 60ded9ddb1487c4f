import { LARGE_BYTES_MIN, SHOWN_DATA_BYTES_MAX } from '../../src/base/limits.ts'
import type { JsonObject } from '../../src/base/json.ts'
import * as fc from '../kit/fast-check.ts'
import type { Reply } from '../kit/still-vault.ts'
import { lengthsStage, type LengthsStage } from './stage.ts'
import { requestsFor, type LengthsRequest } from './requests.ts'

export interface LengthsTally {
  readonly tokens: number
  readonly operations: number
  readonly requests: number
  /** One line per response that differs from the one about a token of one byte. */
  readonly differences: readonly string[]
}

/**
 * Creates `count` tokens of random length, each for one round: names it in every operation, by callers that may not see its
 * data, and compares each response with the one about a token of one byte.
 */
export async function checkLengths({
  count,
  seed,
  large = true,
}: {
  readonly count: number
  readonly seed: number
  /** Whether to make the requests that read 32 MiB, which take most of the time. */
  readonly large?: boolean
}): Promise<LengthsTally> {
  const stage = await lengthsStage()
  try {
    const [one, again] = [await round(stage, 1, large), await round(stage, 1, false)]
    for (const [name, response] of again) {
      if (one.get(name) !== response) throw new Error(`${name}: two tokens of one byte differ`)
    }
    const differences: string[] = []
    let requests = 0
    for (const [at, length] of lengthsOf(count, seed).entries()) {
      const found = await round(stage, length, large && at % WITH_DATA_EVERY === 0)
      requests += found.size
      for (const [name, response] of found) {
        if (one.get(name) !== response) {
          differences.push(
            `${name}, ${length} bytes: ${brief(response)}, not ${brief(one.get(name)!)}`,
          )
        }
      }
    }
    return { tokens: count, operations: one.size, requests, differences }
  } finally {
    await stage.close()
  }
}

/** Requests that read 32 MiB of the caller's own tokens are made in one of so many rounds. */
const WITH_DATA_EVERY = 200

/** The response to each request about a token of `length` bytes, by name. */
async function round(
  stage: LengthsStage,
  length: number,
  withData: boolean,
): Promise<Map<string, string>> {
  const responses = new Map<string, string>()
  const id = await stage.create(length)
  for (const it of requestsFor(stage, id)) {
    if (it.readsMuch && !withData) continue
    const reply = await send(stage, it)
    const made = madeBy(it, reply)
    responses.set(it.name, responseOf(reply, [id, ...made]))
    // Left there, they would be duplicates in later rounds.
    for (const other of made) await stage.remove(other)
  }
  await stage.remove(id)
  return responses
}

async function send({ vault }: LengthsStage, it: LengthsRequest): Promise<Reply> {
  const { method, path, key, headers = {}, body } = it
  return await vault.call(method, path, { key, headers, ...(body !== undefined && { body }) })
}

/** Returns the ids of the tokens that a request made, which does not find their duplicates. */
function madeBy({ path }: LengthsRequest, { status, text }: Reply): string[] {
  if (!CREATE_TOKENS.has(path) || status >= 300) return []
  const tokens = [JSON.parse(text)].flat() as JsonObject[]
  return tokens.flatMap(({ id, _extras }) => {
    const { deduplicated } = (_extras ?? {}) as JsonObject
    return deduplicated === true ? [] : [id as string]
  })
}

const CREATE_TOKENS: ReadonlySet<string> = new Set(['/tokens', '/tokenize'])

/** Returns the response without the date, and with each id that was drawn for it replaced by as many question marks. */
function responseOf({ status, headers, text }: Reply, ids: readonly string[]): string {
  const shown = Object.entries(headers).filter(([name]) => name !== 'date')
  const drawn = [...ids, headers['bt-trace-id'], headers['bt-reactor-request-id']]
  return drawn.reduce<string>(
    (response, it) =>
      it === undefined ? response : response.replaceAll(it, '?'.repeat(it.length)),
    `${status} ${JSON.stringify(shown)} ${text}`,
  )
}

/** Lengths of all magnitudes, and some at each limit on data. */
function lengthsOf(count: number, seed: number): readonly number[] {
  const magnitudes = fc.double({ min: 0, max: Math.log(LONGEST), noNaN: true })
  const length = fc.oneof(
    { weight: 3, arbitrary: magnitudes.map((it) => Math.max(1, Math.round(Math.exp(it)))) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 20 }) },
    ...[4_096, LARGE_BYTES_MIN, SHOWN_DATA_BYTES_MAX / 8].map((it) => ({
      weight: 1,
      arbitrary: fc.integer({ min: it - 100, max: it + 100 }),
    })),
  )
  return fc.sample(length, { numRuns: count, seed })
}

const LONGEST = 5_000_000

function brief(response: string): string {
  const code = /"code":"(\w+)"/.exec(response)?.[1]
  return `${response.slice(0, 3)} ${code ?? `of ${response.length} characters`}`
}

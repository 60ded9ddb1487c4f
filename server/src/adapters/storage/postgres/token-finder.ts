import { isUuid } from '../../../base/id.ts'
import {
  INLINE_DATA_BYTES_MAX,
  LARGE_BYTES_MIN,
  SHOWN_DATA_BYTES_MAX,
} from '../../../base/limits.ts'
import type { FoundToken, StoredToken } from '../../../ports/stored.ts'
import { DataCount, TooMuchData, withoutLongData } from '../../../ports/too-much-data.ts'
import { rowsFrom, columnsOf } from './several-rows.ts'
import { idOf, tokenOf } from './rows.ts'
import { kept, type AskPostgres, type PostgresValue } from './session.ts'
import { packText } from './text.ts'
import { columnsIf } from './token-content.ts'
import { VISIBLE } from './visibility.ts'

interface TokenLookup {
  readonly tenantId: string
  readonly ids: readonly string[]
  readonly bytesMax: number
  readonly resolve: (tokens: FoundToken[]) => void
  readonly reject: (reason: unknown) => void
}

const INTERNAL_IDS = { tenant: 'uuid', serial: 'uuid', most: 'integer' } as const
const NAMES = { tenant: 'uuid', name: 'text', most: 'integer' } as const

/** Looks rows up one by one, by key: LIMIT keeps the plan from becoming a join, which might read the whole table. */
function select(columns: string): string {
  return `SELECT found.* FROM ${rowsFrom(INTERNAL_IDS, 'asked')}
    CROSS JOIN LATERAL (SELECT ${columns} FROM tokens WHERE tokens.tenant = asked.tenant
      AND tokens.serial = asked.serial AND tokens.name IS NULL AND ${VISIBLE} LIMIT 1) AS found
    UNION ALL
    SELECT found.* FROM ${rowsFrom(NAMES, 'asked', 4)}
    CROSS JOIN LATERAL (SELECT ${columns} FROM tokens WHERE tokens.tenant = asked.tenant
      AND tokens.name = asked.name AND ${VISIBLE} LIMIT 1) AS found`
}

const FIND = kept(
  'find-tokens',
  select(columnsIf('octet_length(tokens.data) <= asked.most', 'tokens')),
)
const KNOWN = kept('known-tokens', select('tokens.serial, tokens.name'))
const WEIGH = kept(
  'weigh-tokens',
  `SELECT coalesce(sum(bytes), 0)::bigint AS bytes
   FROM (${select('octet_length(tokens.data) AS bytes')}) AS weighed`,
)

/** Approximate number of ids per statement. */
const IDS_AT_ONCE = 1_000

/** Statements in flight at a time; lookups that arrive meanwhile share the next one. */
const IN_FLIGHT_MAX = 2

/** Finds tokens by id, and batches concurrent lookups into one statement. */
export class TokenFinder {
  readonly #ask: AskPostgres
  #waiting: TokenLookup[] = []
  #inFlight = 0
  #leaving = false

  constructor(ask: AskPostgres) {
    this.#ask = ask
  }

  /** Resolves as TokenReader.find() does outside transactions. */
  async find(
    tenantId: string,
    ids: readonly string[],
    bytesMax = SHOWN_DATA_BYTES_MAX,
  ): Promise<StoredToken[]> {
    if (ids.length === 0) return []
    // The statement bounds each token by the limit for all of them, so the sum has to be checked first.
    if (ids.length > 1 && bytesMax > LARGE_BYTES_MIN) await this.#weigh(tenantId, ids, bytesMax)
    return new DataCount(bytesMax).gather(await this.#enqueue(tenantId, ids, bytesMax))
  }

  /** Resolves as TokenReader.lookUp() does outside transactions. */
  async lookUp(tenantId: string, ids: readonly string[]): Promise<FoundToken[]> {
    if (ids.length === 0) return []
    const found = await this.#enqueue(tenantId, ids, INLINE_DATA_BYTES_MAX)
    // Another look-up in the same statement may have asked for more.
    return found.map(withoutLongData)
  }

  /** Looks the tokens up with the next statement. Data longer than `bytesMax` may be null. */
  async #enqueue(
    tenantId: string,
    ids: readonly string[],
    bytesMax: number,
  ): Promise<FoundToken[]> {
    const { promise, resolve, reject } = Promise.withResolvers<FoundToken[]>()
    this.#waiting.push({ tenantId, ids: [...new Set(ids)], bytesMax, resolve, reject })
    this.#leaveSoon()
    return await promise
  }

  /** Resolves as TokenReader.known() does outside transactions. */
  async known(tenantId: string, ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return []
    const rows = await this.#ask(KNOWN, parametersFor([{ tenantId, ids: [...new Set(ids)] }]))
    return rows.map(idOf)
  }

  /** Throws TooMuchData when the tokens' data exceeds `bytesMax` in total. */
  async #weigh(tenantId: string, ids: readonly string[], bytesMax: number): Promise<void> {
    const asked = parametersFor([{ tenantId, ids: [...new Set(ids)] }])
    const [row] = await this.#ask(WEIGH, asked)
    if (Number(row!.bytes) > bytesMax) throw new TooMuchData()
  }

  #leaveSoon(): void {
    if (this.#leaving) return
    this.#leaving = true
    setImmediate(() => {
      this.#leaving = false
      while (this.#inFlight < IN_FLIGHT_MAX && this.#waiting.length > 0)
        void this.#send(this.#take())
    })
  }

  #take(): TokenLookup[] {
    let ids = 0
    const end = this.#waiting.findIndex((it) => (ids += it.ids.length) >= IDS_AT_ONCE)
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end + 1)
  }

  async #send(asked: readonly TokenLookup[]): Promise<void> {
    this.#inFlight++
    try {
      const found = await this.#find(asked)
      for (const { tenantId, ids, resolve } of asked) {
        const own = found.get(tenantId)
        resolve(ids.flatMap((id) => own?.get(id) ?? []))
      }
    } catch (error) {
      for (const it of asked) it.reject(error)
    } finally {
      this.#inFlight--
      this.#leaveSoon()
    }
  }

  /** Returns tokens by tenant and id, with data if at least one lookup allows its size. */
  async #find(asked: readonly TokenLookup[]): Promise<Map<string, Map<string, FoundToken>>> {
    const rows = await this.#ask(FIND, parametersFor(asked))
    const found = new Map<string, Map<string, FoundToken>>()
    for (const row of rows) {
      const tenant = String(row.tenant)
      const token = tokenOf(row)
      const own = found.get(tenant) ?? new Map<string, FoundToken>()
      if (row.data !== null || !own.has(token.id)) own.set(token.id, token)
      found.set(tenant, own)
    }
    return found
  }
}

/** Returns the parameters of select(). */
function parametersFor(
  asked: readonly (Pick<TokenLookup, 'tenantId' | 'ids'> & { readonly bytesMax?: number })[],
): PostgresValue[] {
  const each = asked.flatMap(({ tenantId, ids, bytesMax = 0 }) =>
    ids.map((id) => [tenantId, id, bytesMax] as const),
  )
  const internalIds = each.filter(([, id]) => isUuid(id))
  const names = each.map(([tenantId, id, most]) => [tenantId, packText(id), most])
  return [...columnsOf(INTERNAL_IDS, internalIds), ...columnsOf(NAMES, names)]
}

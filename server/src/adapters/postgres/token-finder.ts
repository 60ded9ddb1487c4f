import { isUuid } from '../../base/id.ts'
import type { StoredToken } from '../../world/stored.ts'
import { rowsFrom, columnsOf } from './bulk.ts'
import { tokenOf } from './rows.ts'
import { kept, type Ask } from './session.ts'
import { packText } from './text.ts'
import { TOKEN_COLUMNS } from './token-content.ts'
import { VISIBLE } from './visibility.ts'

interface Asked {
  readonly tenantId: string
  readonly ids: readonly string[]
  readonly resolve: (tokens: StoredToken[]) => void
  readonly reject: (reason: unknown) => void
}

const SERIALS = { tenant: 'uuid', serial: 'uuid' } as const
const NAMES = { tenant: 'uuid', name: 'text' } as const

const COLUMNS = TOKEN_COLUMNS.map((it) => `tokens.${it}`).join(', ')

/** One row at a time, by its key: LIMIT keeps the plan from being a join, which might read all there are. */
const FIND = kept(
  'find-tokens',
  `SELECT found.* FROM ${rowsFrom(SERIALS, 'asked')}
    CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM tokens WHERE tokens.tenant = asked.tenant
      AND tokens.serial = asked.serial AND tokens.name IS NULL AND ${VISIBLE} LIMIT 1) AS found
    UNION ALL
    SELECT found.* FROM ${rowsFrom(NAMES, 'asked', 3)}
    CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM tokens WHERE tokens.tenant = asked.tenant
      AND tokens.name = asked.name AND ${VISIBLE} LIMIT 1) AS found`,
)

/** Ids that one statement asks for, more or less. */
const IDS_AT_ONCE = 1_000

/** Statements under way at a time; what comes meanwhile is asked together, next. */
const UNDER_WAY_MAX = 2

/** Finds tokens by their ids: whoever asks at the same time is answered by one statement. */
export class TokenFinder {
  readonly #ask: Ask
  #waiting: Asked[] = []
  #underWay = 0
  #leaving = false

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** Resolves as TokenReader.find() does outside of transactions. */
  find(tenantId: string, ids: readonly string[]): Promise<StoredToken[]> {
    if (ids.length === 0) return Promise.resolve([])
    const { promise, resolve, reject } = Promise.withResolvers<StoredToken[]>()
    this.#waiting.push({ tenantId, ids: [...new Set(ids)], resolve, reject })
    this.#leaveSoon()
    return promise
  }

  #leaveSoon(): void {
    if (this.#leaving) return
    this.#leaving = true
    setImmediate(() => {
      this.#leaving = false
      while (this.#underWay < UNDER_WAY_MAX && this.#waiting.length > 0)
        void this.#send(this.#take())
    })
  }

  #take(): Asked[] {
    let ids = 0
    const end = this.#waiting.findIndex((it) => (ids += it.ids.length) >= IDS_AT_ONCE)
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end + 1)
  }

  async #send(asked: readonly Asked[]): Promise<void> {
    this.#underWay++
    try {
      const found = await this.#find(asked)
      for (const { tenantId, ids, resolve } of asked) {
        const own = found.get(tenantId)
        resolve(ids.flatMap((id) => own?.get(id) ?? []))
      }
    } catch (error) {
      for (const it of asked) it.reject(error)
    } finally {
      this.#underWay--
      this.#leaveSoon()
    }
  }

  /** By tenant and id. */
  async #find(asked: readonly Asked[]): Promise<Map<string, Map<string, StoredToken>>> {
    const pairs = asked.flatMap(({ tenantId, ids }) => ids.map((id) => [tenantId, id] as const))
    const serials = pairs.filter(([, id]) => isUuid(id))
    const names = pairs.map(([tenantId, id]) => [tenantId, packText(id)])
    const rows = await this.#ask(FIND, [...columnsOf(SERIALS, serials), ...columnsOf(NAMES, names)])
    const found = new Map<string, Map<string, StoredToken>>()
    for (const row of rows) {
      const tenant = String(row.tenant)
      const token = tokenOf(row)
      const own = found.get(tenant) ?? new Map<string, StoredToken>()
      found.set(tenant, own.set(token.id, token))
    }
    return found
  }
}

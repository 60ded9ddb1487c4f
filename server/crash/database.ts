/**
 * The database as it lies there, read without the store: SQL of our own, through another process's eyes.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { eventsOfRow } from '../src/adapters/storage/sqlite/earlier-events.ts'
import { firstFlaw } from '../src/audit/chain-flaws.ts'
import { CHAIN_START, decodeAuditEvent } from '../src/ports/audit-log.ts'

/** The stored data that can be read without a key. */
export class SqliteDatabase {
  readonly #db: DatabaseSync

  constructor(folder: string) {
    this.#db = new DatabaseSync(join(folder, 'symbolon.db'), { readOnly: true, timeout: 5_000 })
  }

  /** Ids of the tokens that readers may see, made at `since` (epoch milliseconds) or later. */
  visibleTokens(since = 0): string[] {
    const internalId = Buffer.from(
      Math.max(0, since).toString(16).padStart(12, '0').padEnd(32, '0'),
      'hex',
    )
    const rows = this.#db
      .prepare(
        `SELECT lower(hex(tokens.serial)) AS serial, tokens.name AS name
         FROM tokens LEFT JOIN units ON units.id = tokens.unit
         WHERE units.id IS NULL AND tokens.tenant = (SELECT id FROM tenants) AND tokens.serial >= ?`,
      )
      .all(internalId)
    return rows.map(
      ({ serial: internalId, name }) => (name as string | null) ?? uuidOf(internalId as string),
    )
  }

  /** Describes corruption of the file and inconsistencies between its tables; empty when there are none. */
  flaws(): string[] {
    const found: string[] = []
    for (const row of this.#db.prepare('PRAGMA integrity_check').all()) {
      const message = String(row['integrity_check'])
      if (message !== 'ok') found.push(`integrity_check: ${message}`)
    }
    for (const [what, sql] of Object.entries(NONE_OF)) {
      const { count } = this.#db.prepare(`SELECT count(*) AS count ${sql}`).get() as {
        count: number
      }
      if (count > 0) found.push(`${count} ${what}`)
    }
    return [...found, ...this.#flawsOfAuditLog()]
  }

  /** Whether the audit log is without a gap, and every token in it. */
  #flawsOfAuditLog(): string[] {
    const rows = this.#db.prepare('SELECT * FROM record ORDER BY number').all()
    const events = rows.flatMap((row) => eventsOfRow(row))
    const flaw = firstFlaw(CHAIN_START, events)
    const tip = this.#db.prepare('SELECT number FROM record_heads').get()
    const made = new Set(
      events
        .map((it) => decodeAuditEvent(it.entry))
        .filter((it) => it.entityType === 'token' && it.operation === 'create' && it.changed)
        .flatMap((it) => it.entityIds),
    )
    // Tokens made in a transaction enter the audit log only on commit.
    const internalIds = this.#db
      .prepare(
        `SELECT lower(hex(serial)) AS serial FROM tokens
         WHERE unit IS NULL OR unit NOT IN (SELECT id FROM units)`,
      )
      .all()
    const unrecorded = internalIds.filter((it) => !made.has(uuidOf(String(it['serial'])))).length
    return [
      ...(flaw === null ? [] : [`event ${flaw.number} of the audit log ${flaw.what}`]),
      ...(tip?.['number'] === events.length ? [] : ['the audit log ends elsewhere than it says']),
      ...(unrecorded === 0 ? [] : [`${unrecorded} tokens that nobody made, says the audit log`]),
    ]
  }

  close(): void {
    this.#db.close()
  }
}

const NONE_OF = {
  'staging batches that no transaction holds': `FROM units WHERE holder IS NULL OR whole = 0
    OR holder NOT IN (SELECT number FROM transactions)`,
  'staging batches of committed transactions': `FROM units JOIN transactions ON number = holder
    WHERE state = 'committed'`,
  'changes that wait for no open transaction': `FROM pending WHERE holder NOT IN
    (SELECT number FROM transactions WHERE state IN ('open', 'expired'))`,
  'search indexes without their token': `FROM token_indexes AS it WHERE NOT EXISTS
    (SELECT 1 FROM tokens WHERE tokens.tenant = it.tenant AND tokens.serial = it.serial)`,
  'tokens without their search indexes': `FROM tokens AS it WHERE indexes IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM token_indexes WHERE tenant = it.tenant AND serial = it.serial)`,
} as const

function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

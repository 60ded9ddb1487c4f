/** A vault in a data folder with at least one encrypted value of each kind, for tests that damage it. */
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setUp } from '../../src/access/applications/set-up.ts'
import { createApp } from '../../src/app.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import type { ValueKind } from '../../src/ports/unreadable-value.ts'
import { openWorld } from '../../src/cli/open-world.ts'
import { readConfig } from '../../src/config.ts'
import { makeKeys } from '../../crash/vault-client.ts'
import { sealOneOfEach } from '../rotation/one-of-each.ts'
import { flipped } from '../kit/damage.ts'
import { STILL_SETTINGS } from '../kit/still-settings.ts'
import { stillRunner } from '../kit/still-runner.ts'

export interface EachKindVault {
  /** The data folder, with the root key in it. */
  readonly folder: string
  readonly tenantId: string
  /** Reads tokens in plaintext. */
  readonly readKey: string
  readonly managementKey: string
  /** Creates tokens. */
  readonly writeKey: string
  /** Another tenant, with one token. */
  readonly other: { readonly tenantId: string; readonly token: string }
  readonly remove: () => void
}

export async function eachKindVault(database: string | null = null): Promise<EachKindVault> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-damage-'))
  const config = readConfig(
    { 'data-dir': folder, 'log-level': 'silent' },
    database === null ? {} : { SYMBOLON_DATABASE_URL: database },
  )
  const { world, keyProvider, close } = await openWorld(config, { onFault: () => {} })
  const app = createApp({ ...world, runner: stillRunner() }, STILL_SETTINGS)
  await app.listen({ host: '127.0.0.1', port: 0 })
  try {
    const { port } = app.server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const one = await setUp(world, keyProvider, { name: 'one', plan: 'enterprise' })
    const keys = await makeKeys(port, one.apiKey)
    await sealOneOfEach(url, keys, one.apiKey)
    await app.jobs.poll()
    await app.jobs.settled()
    // So that the audit log has a checkpoint.
    await auditCheckpointer(world)()
    const two = await setUp(world, keyProvider, { name: 'two', plan: 'enterprise' })
    const twoKeys = await makeKeys(port, two.apiKey)
    const made = await fetch(`${url}/tokens`, {
      method: 'POST',
      headers: { 'bt-api-key': twoKeys.write, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'token', data: 'of another tenant' }),
    })
    const { id: token } = (await made.json()) as { id: string }
    return {
      folder,
      tenantId: one.tenantId,
      readKey: keys.read,
      writeKey: keys.write,
      managementKey: one.apiKey,
      other: { tenantId: two.tenantId, token },
      remove: () => rmSync(folder, { recursive: true, force: true }),
    }
  } finally {
    await app.close()
    await close()
  }
}

/** Where each kind of encrypted value is stored. */
const COLUMNS: Readonly<Record<ValueKind, { table: string; column: string }>> = {
  token_data: { table: 'tokens', column: 'data' },
  security_code: { table: 'tokens', column: 'cvc' },
  pending_token_data: { table: 'pending', column: 'data' },
  pending_security_code: { table: 'pending', column: 'cvc' },
  idempotency_response: { table: 'answers', column: 'body' },
  proxy_configuration: { table: 'proxies', column: 'terms' },
  reactor_configuration: { table: 'reactors', column: 'terms' },
  job_request: { table: 'jobs', column: 'terms' },
  job_result: { table: 'jobs', column: 'result' },
  callback_secrets: { table: 'callback_secrets', column: 'secrets' },
  tenant_key: { table: 'tenant_keys', column: 'wrapped' },
  root_key_check: { table: 'installation', column: 'root_key_check' },
}

export const VALUE_KINDS = Object.keys(COLUMNS) as readonly ValueKind[]

/**
 * Flips a bit in one of the tenant's values of this kind, in the database file itself. `at` selects the byte, as a fraction of the
 * value; `purpose` selects a tenant key.
 */
export function flipBit(
  { folder, tenantId }: Pick<EachKindVault, 'folder' | 'tenantId'>,
  kind: ValueKind,
  { at = 0.999, purpose = 'fp' }: { at?: number; purpose?: string } = {},
): void {
  const { table, column } = COLUMNS[kind]
  const tenant = Buffer.from(tenantId.replaceAll('-', ''), 'hex')
  const db = new DatabaseSync(join(folder, 'symbolon.db'))
  try {
    const own =
      kind === 'root_key_check'
        ? '1 = 1'
        : `tenant = ?${kind === 'tenant_key' ? ` AND purpose = '${purpose}'` : ''}`
    const values = kind === 'root_key_check' ? [] : [tenant]
    const sql = `SELECT ${column} AS value FROM ${table} WHERE ${own} AND ${column} IS NOT NULL`
    const row = db.prepare(sql).get(...values)
    if (row === undefined) throw new Error(`There is no ${kind} in ${folder}`)
    const value = row['value'] as Uint8Array
    const changed = flipped(value, Math.floor(at * value.length))
    const update = db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${own} AND ${column} = ?`)
    const { changes } = update.run(changed, ...values, value)
    if (Number(changes) !== 1) throw new Error(`${changes} values were changed`)
  } finally {
    db.close()
  }
}

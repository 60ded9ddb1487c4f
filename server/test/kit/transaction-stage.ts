/** A still vault with an application that has all permissions on tokens, and helpers for the steps of a transaction. */
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Method, Reply, StillVaultOptions } from './still-vault.ts'
import { tokenStage, type TokenStage } from './token-stage.ts'

export interface TransactionStage extends TokenStage {
  /** Opens a transaction and returns its id. */
  readonly begin: (by?: string) => Promise<string>
  readonly commit: (transaction: string, by?: string) => Promise<Reply>
  readonly rollback: (transaction: string, by?: string) => Promise<Reply>
  /** Calls within a transaction, or outside of any. */
  readonly send: (
    method: Method,
    path: string,
    within: string | null,
    body?: Json,
  ) => Promise<Reply>
  /** Creates a token from `body`, expects success and returns its id. */
  readonly make: (within: string | null, body: JsonObject) => Promise<string>
  /** Returns the status of reading a token outside of any transaction, as all reads are. */
  readonly seen: (id: string) => Promise<number>
}

const ALL = ['token:create', 'token:read', 'token:update', 'token:delete']

export async function transactionStage(options: StillVaultOptions = {}): Promise<TransactionStage> {
  const made = await tokenStage(options, { permissions: ALL })
  const { vault, key } = made
  const end =
    (how: string) =>
    (transaction: string, by = key): Promise<Reply> =>
      vault.call('POST', `/transactions/${transaction}/${how}`, { key: by })
  const send: TransactionStage['send'] = (method, path, within, body) =>
    vault.call(method, path, {
      key,
      headers: within === null ? {} : { 'bt-transaction-id': within },
      ...(body === undefined ? {} : { body }),
    })
  return {
    ...made,
    begin: async (by = key) => {
      const reply = await vault.call('POST', '/transactions', { key: by })
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
    commit: end('commit'),
    rollback: end('rollback'),
    send,
    make: async (within, body) => {
      const reply = await send('POST', '/tokens', within, body)
      assert.equal(reply.status, 201, reply.text)
      return reply.json()['id'] as string
    },
    seen: async (id) => (await vault.call('GET', `/tokens/${id}`, { key })).status,
  }
}

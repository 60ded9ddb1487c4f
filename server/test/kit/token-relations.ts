/**
 * A still vault with one token for each way in which a token may exist or not: the caller's own, another tenant's, deleted,
 * or changed by an open transaction.
 */
import assert from 'node:assert/strict'
import type { JsonObject } from '../../src/base/json.ts'
import type { TokenLocation } from './rights-model.ts'
import { stillVault, type Method, type Reply, type StillVault } from './still-vault.ts'

export const HOME = '/pci/high/'
export const SECOND_HOME = '/bank/low/'
/** The container an open transaction moves a token to. */
export const MOVED_TO = '/elsewhere/'

export const RELATIONS = [
  'own',
  'in two containers',
  'foreign',
  'deleted',
  'expired',
  'rolled back',
  'never made',
  'uncommitted',
  'moved by a transaction',
  'deleted by a transaction',
  'made and deleted by a transaction',
] as const
export type Relation = (typeof RELATIONS)[number]

/** The transaction named in the header of a request. */
export type Header = 'none' | 'the one of the token' | 'another' | 'one of the other tenant'

export interface RelationSubject {
  readonly relation: Relation
  readonly header: Header
  /** Its id, as requests write it. */
  readonly id: string
  readonly data: string
  /** Undefined for none. */
  readonly transaction: string | undefined
  /** The token as reads, lists and searches see it; null if they do not. They are never part of a transaction. */
  readonly read: TokenLocation | null
  /** The token as seen by a change within the transaction of the header. */
  readonly change: TokenLocation | null
  /** Whether a transaction other than the header's has changed it. */
  readonly locked: boolean
  /** Whether its id is unavailable for a new token of its tenant. */
  readonly taken: boolean
}

export interface RelationStage {
  readonly vault: StillVault
  /** The key of a private application that may do and see everything. */
  readonly adminKey: string
  readonly subject: (relation: Relation, header: Header) => RelationSubject
  /** Restores the vault after a request about the subject has changed something. */
  readonly restore: (subject: RelationSubject) => Promise<void>
  /** Returns the other tenant's view of its own data. */
  readonly foreignState: () => Promise<string>
}

export const EVERY_TOKEN_PERMISSION = [
  'token:create',
  'token:read',
  'token:update',
  'token:delete',
  'token:search',
  'token:use',
]

/** The rule that allows and reveals everything. */
export const EVERYTHING = {
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: EVERY_TOKEN_PERMISSION,
} as const

export async function relationStage(): Promise<RelationStage> {
  const vault = await stillVault()
  const adminKey = await vault.keyFor({ rules: [{ ...EVERYTHING }] })
  const theirKey = await keyInOther(vault)
  const foreignTransaction = await begin(theirKey)
  const ids = new Map<Relation, string>()
  const transactions = new Map<Relation | 'another', string>([['another', await begin()]])
  let made = 0

  for (const relation of RELATIONS) await make(relation)
  vault.world.clock.pass(2000)
  return { vault, adminKey, subject, restore, foreignState }

  function subject(relation: Relation, header: Header): RelationSubject {
    const id = ids.get(relation)!
    const at = (...containers: string[]): TokenLocation => ({ id, containers })
    const inside = header === 'the one of the token'
    const transaction = {
      none: undefined,
      'the one of the token': transactions.get(relation),
      another: transactions.get('another'),
      'one of the other tenant': foreignTransaction,
    }[header]
    const here = { read: at(HOME), change: at(HOME), locked: false, taken: true }
    const gone = { read: null, change: null, locked: false, taken: false }
    const states: Record<
      Relation,
      Pick<RelationSubject, 'read' | 'change' | 'locked' | 'taken'>
    > = {
      own: here,
      'in two containers': {
        ...here,
        read: at(HOME, SECOND_HOME),
        change: at(HOME, SECOND_HOME),
      },
      foreign: gone,
      deleted: gone,
      // Its id stays taken until it is swept from the file.
      expired: { ...gone, taken: true },
      'rolled back': gone,
      'never made': gone,
      uncommitted: { ...gone, change: inside ? at(HOME) : null, taken: true },
      'moved by a transaction': { ...here, change: at(inside ? MOVED_TO : HOME), locked: !inside },
      // Until the commit both the token and its id stay taken, even within the transaction.
      'deleted by a transaction': inside
        ? { ...gone, read: at(HOME), taken: true }
        : { ...here, locked: true },
      'made and deleted by a transaction': gone,
    }
    return { relation, header, id, data: dataOf(relation), transaction, ...states[relation] }
  }

  async function make(relation: Relation): Promise<void> {
    const id = `${relation} ${++made}`
    ids.set(relation, id)
    const body = {
      id,
      data: dataOf(relation),
      mask: '{{ data | reveal_last: 4 }}',
      containers: relation === 'in two containers' ? [HOME, SECOND_HOME] : [HOME],
    }
    const path = pathOf(id)
    switch (relation) {
      case 'own':
      case 'in two containers':
        return await done(201, 'POST', '/tokens', body)
      case 'foreign':
        return await done(201, 'POST', '/tokens', body, { key: theirKey })
      case 'deleted':
        await done(201, 'POST', '/tokens', body)
        return await done(204, 'DELETE', path)
      case 'expired': {
        const expiresAt = new Date(vault.world.clock.now() + 1000).toISOString()
        return await done(201, 'POST', '/tokens', { ...body, expires_at: expiresAt })
      }
      case 'never made':
        return
      case 'rolled back':
      case 'uncommitted': {
        const transaction = await begin()
        await done(201, 'POST', '/tokens', body, { transaction })
        if (relation === 'uncommitted') return void transactions.set(relation, transaction)
        return await done(200, 'POST', `/transactions/${transaction}/rollback`)
      }
      case 'moved by a transaction':
      case 'deleted by a transaction': {
        await done(201, 'POST', '/tokens', body)
        const transaction = await begin()
        transactions.set(relation, transaction)
        if (relation === 'deleted by a transaction') {
          return await done(204, 'DELETE', path, undefined, { transaction })
        }
        return await done(200, 'PATCH', path, { containers: [MOVED_TO] }, { transaction })
      }
      case 'made and deleted by a transaction': {
        const transaction = await begin()
        transactions.set(relation, transaction)
        await done(201, 'POST', '/tokens', body, { transaction })
        return await done(204, 'DELETE', path, undefined, { transaction })
      }
    }
  }

  async function restore({ relation, header, id }: RelationSubject): Promise<void> {
    if (header === 'another') {
      await done(200, 'POST', `/transactions/${transactions.get('another')!}/rollback`)
      transactions.set('another', await begin())
      return
    }
    const transaction = transactions.get(relation)
    if (transaction !== undefined) {
      await done(200, 'POST', `/transactions/${transaction}/rollback`)
    }
    // Created under this id, or created again.
    await vault.call('DELETE', pathOf(id), { key: adminKey })
    if (['foreign', 'deleted', 'rolled back', 'never made'].includes(relation)) return
    await make(relation)
  }

  async function foreignState(): Promise<string> {
    const asked = ['/tokens', pathOf(ids.get('foreign')!)]
    const replies = await Promise.all(asked.map((it) => vault.call('GET', it, { key: theirKey })))
    return replies.map((it) => it.text).join('\n')
  }

  async function begin(key = adminKey): Promise<string> {
    const reply = await vault.call('POST', '/transactions', { key })
    assert.equal(reply.status, 201, reply.text)
    return reply.json()['id'] as string
  }

  async function done(
    status: number,
    method: Method,
    path: string,
    body?: JsonObject,
    { key = adminKey, transaction }: { key?: string; transaction?: string } = {},
  ): Promise<void> {
    const headers = transactionHeader(transaction)
    const options = { key, headers, ...(body === undefined ? {} : { body }) }
    const reply: Reply = await vault.call(method, path, options)
    assert.equal(reply.status, status, `${method} ${path}: ${reply.text}`)
  }
}

export function pathOf(id: string): string {
  return `/tokens/${encodeURIComponent(id)}`
}

export function transactionHeader(transaction: string | undefined): Record<string, string> {
  return transaction === undefined ? {} : { 'bt-transaction-id': transaction }
}

/** Returns letters and a number that are unique to the relation and shown by its mask. */
function dataOf(relation: Relation): string {
  return `plaintext${relation.replaceAll(' ', '')}${1000 + RELATIONS.indexOf(relation)}`
}

async function keyInOther(vault: StillVault): Promise<string> {
  const managementKey = await vault.addTenant('other')
  const body = { name: 'theirs', type: 'private', rules: [{ ...EVERYTHING }] }
  const reply = await vault.call('POST', '/applications', { key: managementKey, body })
  assert.equal(reply.status, 201, reply.text)
  return reply.json()['key'] as string
}

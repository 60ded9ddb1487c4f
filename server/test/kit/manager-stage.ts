/** A still vault, called by a tenant's manager. */
import type { Json } from '../../src/base/json.ts'
import {
  stillVault,
  type Method,
  type Reply,
  type StillVault,
  type StillVaultOptions,
} from './still-vault.ts'

export interface ManagerStage {
  readonly vault: StillVault
  readonly tenantId: string
  /** The id of the calling private application. */
  readonly applicationId: string
  readonly managerId: string
  readonly call: ManagerCall
}

export type ManagerCall = (method: Method, path: string, body?: Json) => Promise<Reply>

export async function managerStage(options: StillVaultOptions = {}): Promise<ManagerStage> {
  const vault = await stillVault(options)
  const { managementKey: key, tenantId } = vault
  const call: ManagerCall = (method, path, body) =>
    vault.call(method, path, { key, ...(body !== undefined && { body }) })
  const application = { name: 'x', type: 'private', permissions: ['token:use'] }
  const applicationId = (await call('POST', '/applications', application)).json()['id'] as string
  const managerId = (await call('GET', '/applications/key')).json()['id'] as string
  return { vault, tenantId, applicationId, managerId, call }
}

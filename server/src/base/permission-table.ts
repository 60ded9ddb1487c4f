import type { ApplicationType } from './access.ts'

export interface PermissionEntry<Type extends string = string> {
  readonly type: Type
  readonly description: string
  readonly applicationTypes: readonly ApplicationType[]
}

const BOTH = ['public', 'private'] as const
const PRIVATE = ['private'] as const
const MANAGEMENT = ['management'] as const

/**
 * All permissions: what each allows, and which applications may hold it. The one place to add a permission.
 *
 * Source: interface.md, Authentication, and its Access section.
 */
export const PERMISSIONS = [
  entry('token:create', 'Create tokens', BOTH),
  entry('token:update', 'Change tokens', BOTH),
  entry('token:read', 'Read tokens', PRIVATE),
  entry('token:search', 'Search for tokens', PRIVATE),
  entry('token:delete', 'Delete tokens', PRIVATE),
  entry('token:use', 'Use tokens through proxies and in reactors', PRIVATE),
  entry('proxy:invoke', 'Use tokens through proxies only', PRIVATE),
  entry('reactor:invoke', 'Use tokens in reactors only', PRIVATE),
  entry('reactor:create', 'Create reactors', MANAGEMENT),
  entry('reactor:read', 'Read reactors', MANAGEMENT),
  entry('reactor:update', 'Change reactors', MANAGEMENT),
  entry('reactor:delete', 'Delete reactors', MANAGEMENT),
  entry('proxy:create', 'Create proxies', MANAGEMENT),
  entry('proxy:read', 'Read proxies', MANAGEMENT),
  entry('proxy:update', 'Change proxies', MANAGEMENT),
  entry('proxy:delete', 'Delete proxies', MANAGEMENT),
  entry('application:create', 'Create applications', MANAGEMENT),
  entry('application:read', 'Read applications and list their keys', MANAGEMENT),
  entry('application:update', 'Change applications and their keys', MANAGEMENT),
  entry('application:delete', 'Delete applications', MANAGEMENT),
  entry('tenant:read', 'Read the tenant', MANAGEMENT),
  entry('tenant:update', 'Change the tenant', MANAGEMENT),
  entry('tenant:delete', 'Delete the tenant and all that is in it', MANAGEMENT),
  entry('tenant:member:read', 'Read the members of the tenant', MANAGEMENT),
  entry('tenant:member:update', 'Change the members of the tenant', MANAGEMENT),
  entry('tenant:member:delete', 'Remove members from the tenant', MANAGEMENT),
  entry('tenant:invitation:create', 'Invite people to the tenant', MANAGEMENT),
  entry('tenant:invitation:read', 'Read invitations to the tenant', MANAGEMENT),
  entry('tenant:invitation:update', 'Send invitations to the tenant again', MANAGEMENT),
  entry('tenant:invitation:delete', 'Withdraw invitations to the tenant', MANAGEMENT),
  entry('log:read', 'Read the audit log', MANAGEMENT),
  entry('report:read', 'Read reports on the tenant', MANAGEMENT),
] as const

function entry<const Type extends string>(
  type: Type,
  description: string,
  applicationTypes: readonly ApplicationType[],
): PermissionEntry<Type> {
  return { type, description, applicationTypes }
}

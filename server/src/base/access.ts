/**
 * The words of access: who calls, what a key may do, on which containers.
 *
 * Source: interface.md, Authentication; the catalogue of permissions is docs/interface.md, Access.
 */

import { ServiceError } from './service-error.ts'

export const APPLICATION_TYPES = ['private', 'public', 'management'] as const
export type ApplicationType = (typeof APPLICATION_TYPES)[number]

/** What a principal is: an application, or a session that a public one has opened. */
export type PrincipalType = ApplicationType | 'session'

export const PLANS = ['enterprise', 'standard'] as const
export type Plan = (typeof PLANS)[number]

export type Permission =
  | 'token:create'
  | 'token:update'
  | 'token:read'
  | 'token:search'
  | 'token:delete'
  | 'token:use'
  | 'proxy:invoke'
  | 'reactor:invoke'
  | `${'reactor' | 'proxy' | 'application'}:${'create' | 'read' | 'update' | 'delete'}`
  | `tenant:${'read' | 'update' | 'delete'}`
  | `tenant:member:${'read' | 'update' | 'delete'}`
  | `tenant:invitation:${'create' | 'read' | 'update' | 'delete'}`
  | 'log:read'
  | 'report:read'

/** Newer and narrower than `token:use`, which amounts to both: to use tokens is to use them anywhere. */
export const INVOCATIONS: ReadonlySet<string> = new Set<Permission>([
  'proxy:invoke',
  'reactor:invoke',
])

/**
 * Returns the refusal of who lacks `permission`; it says what would be enough, the usual first, and by `errors` where it is
 * lacking.
 */
export function permissionMissing(
  permission: Permission,
  errors?: Readonly<Record<string, string[]>>,
): ServiceError {
  const enough = INVOCATIONS.has(permission) ? `token:use or ${permission}` : permission
  return new ServiceError('permission_missing', errors, { named: [enough] })
}

/** What a reader sees of a token's data, least first: nothing, its evaluated mask, or all of it. */
export const TRANSFORMS = ['redact', 'mask', 'reveal'] as const
export type Transform = (typeof TRANSFORMS)[number]

export interface AccessRule {
  readonly description: string
  /** Unique in the application, from 1; the lowest number is asked first. */
  readonly priority: number
  /** Lower-case path such as `/pci/high/`; the rule covers everything below it. */
  readonly container: string
  readonly transform: Transform
  readonly permissions: readonly Permission[]
}

/** What can be asked of a token by a rule of a session. */
export const CONDITION_ATTRIBUTES = ['id', 'container'] as const
export const CONDITION_OPERATORS = ['equals', 'starts_with'] as const

export interface Condition {
  readonly attribute: (typeof CONDITION_ATTRIBUTES)[number]
  readonly operator: (typeof CONDITION_OPERATORS)[number]
  /** For a container, a path in its one written form, so that to start with it is to lie below it. */
  readonly value: string
}

/** A rule of a session: in place of a container, what must all be true of a token and its container. */
export interface ConditionalRule extends Omit<AccessRule, 'container'> {
  readonly conditions: readonly Condition[]
}

export type Rule = AccessRule | ConditionalRule

/** What somebody may do. */
export interface Rights {
  readonly type: PrincipalType
  /** Granted on every container, with the transform the permission implies. */
  readonly permissions: readonly Permission[]
  /** Sorted by priority. */
  readonly rules: readonly Rule[]
}

/** The application behind a key, or behind its session, as it is known between requests. */
export interface Principal extends Rights {
  readonly tenantId: string
  readonly plan: Plan
  readonly settings: TenantSettings
  readonly applicationId: string
  /** Of a session, its own id. */
  readonly keyId: string
  /**
   * Whose rights, as they are now, a session's end at: those of the application that authorised it. Null
   * for everybody else.
   */
  readonly within: Rights | null
  /**
   * The only hosts that something may be sent to for it, each by its name or as `*.` and what its name ends
   * with, perhaps with a port; null for any. Of a session, those that both the application that opened it and
   * the one that authorised it may send to.
   */
  readonly destinations: readonly string[] | null
  /** Of a session, the application that gave it its rights. */
  readonly grantorId?: string | undefined
  /** Whether the key is ephemeral, issued to code that acts for the application: nothing that it does may make it last longer. */
  readonly ephemeral?: true | undefined
}

/** Whose code, run by the service itself, asks something of it, and where that code may have something sent to. */
export interface InProcessCaller {
  readonly tenantId: string
  /** As those of a principal. */
  readonly destinations: readonly string[] | null
}

export interface TenantSettings {
  readonly fingerprintTokens: boolean
  readonly deduplicateTokens: boolean
}

/** One answer to "may they?", kept for the audit log. It names containers and rules, never data. */
export interface Decision {
  readonly permission: Permission
  readonly containers: readonly string[]
  readonly allowed: boolean
  /** Priorities of the rules that decided; 0 stands for the application's own permissions. */
  readonly by: readonly number[]
  /** Which thing it was about, where it was about one: a uuid of ours, whatever its id. */
  readonly internalId?: string
  /** What it was about, where that is not what the permission is named for. */
  readonly about?: { readonly entityType: string; readonly operation: string }
  /** How much of that thing's data the caller is to be shown. */
  readonly transform?: Transform
  /** Whether an earlier answer is given again because of it. */
  readonly replayed?: true
  /** Whether it was only asked what would be sent because of it, and nothing was. */
  readonly dryRun?: true
  /** Where something is sent because of it: a host name, and its port where that is not the scheme's own. */
  readonly destination?: string
}

/** What one request carries: its principal, and what was decided for it. Without one no use case runs. */
export interface RequestContext extends Principal {
  readonly traceId: string
  /** Every decision made about this request, in order. */
  readonly decisions: Decision[]
  /** The transaction that its changes of tokens are part of, see enlist(); undefined when they are made at once. */
  transactionId?: string
  /** How many of them are in the audit log; nothing is answered before all are. */
  recorded: number
  /** Under which a successful answer is remembered; null when the caller sent no idempotency key. */
  readonly replay: ReplayScope | null
  /** Absent where nobody waits for an answer: of such work little is done at a time. */
  readonly quota?: () => LargeReadQuota
}

/** What a request takes of its tenant's memory quota when it finds out on its way that it reads or makes much. */
export interface LargeReadQuota {
  /**
   * Resolves when it has a slot, which it keeps until the request is handled; at once when it has been. One that `sends`
   * what it makes also waits until what others made is on its way. Rejects with `tenant_busy`.
   */
  readonly acquireLargeRead: (sends: boolean) => Promise<void>
  /** Releases its slot. So many bytes of what came of it are kept until the request is handled. */
  readonly releaseLargeRead: (kept: number) => void
}

/** One idempotency key of one application, or of one session, on one operation. */
export interface ReplayScope {
  /**
   * SHA-256 over application or session, method, endpoint, path parameters and key; of a public application, bound
   * to the body as well. Opaque to stores.
   */
  id: string
  /** Whether the answer has been committed, so that nobody commits it a second time. */
  remembered: boolean
  /** When the answer must be gone, in epoch milliseconds; undefined for when others are. */
  until?: number
}

/**
 * Types of access control: principals, permissions, rules and containers.
 *
 * Source: interface.md, Authentication; the catalogue of permissions is docs/interface.md, Access.
 */
import { PUBLIC_BODY_BYTES_MAX } from './limits.ts'
import type { PERMISSIONS } from './permission-table.ts'

export const APPLICATION_TYPES = ['private', 'public', 'management'] as const
export type ApplicationType = (typeof APPLICATION_TYPES)[number]

/** The type of a principal: that of its application, or a session that a public application opened. */
export type PrincipalType = ApplicationType | 'session'

export const PLANS = ['enterprise', 'standard'] as const
export type Plan = (typeof PLANS)[number]

export type Permission = (typeof PERMISSIONS)[number]['type']

/** Newer and narrower than `token:use`, which includes both: it allows to use tokens anywhere. */
export const INVOCATIONS: ReadonlySet<string> = new Set<Permission>([
  'proxy:invoke',
  'reactor:invoke',
])

/** Describes the keys of applications of these types, for callers whose own type can never do what they asked for. */
export function keyOfTypes(types: readonly ApplicationType[]): string {
  const written = types.map((it) => `"${it}"`).join(' or ')
  return `the key of an application that was created with "type": ${written} (POST /applications)`
}

/** The part of a token's data that a reader sees, from the least: nothing, its evaluated mask, or all of it. */
export const TRANSFORMS = ['redact', 'mask', 'reveal'] as const
export type Transform = (typeof TRANSFORMS)[number]

export interface AccessRule {
  readonly description: string
  /** Unique in the application, from 1; the lowest number is checked first. */
  readonly priority: number
  /** Lower-case path such as `/pci/high/`; the rule covers everything below it. */
  readonly container: string
  readonly transform: Transform
  readonly permissions: readonly Permission[]
}

/** Attributes of a token that a session's rule can test. */
export const CONDITION_ATTRIBUTES = ['id', 'container'] as const
export const CONDITION_OPERATORS = ['equals', 'starts_with'] as const

export interface Condition {
  readonly attribute: (typeof CONDITION_ATTRIBUTES)[number]
  readonly operator: (typeof CONDITION_OPERATORS)[number]
  /** For a container, a path in canonical form, so that any path that starts with it lies below it. */
  readonly value: string
}

/** A rule of a session: instead of a container, conditions that must all hold for a token and its container. */
export interface ConditionalRule extends Omit<AccessRule, 'container'> {
  readonly conditions: readonly Condition[]
}

export type Rule = AccessRule | ConditionalRule

/** The permissions and rules of a principal. */
export interface Rights {
  readonly type: PrincipalType
  /** Granted on every container, with the transform the permission implies. */
  readonly permissions: readonly Permission[]
  /** Sorted by priority. */
  readonly rules: readonly Rule[]
}

/** A key that lends its rights to what is done with it. */
export interface KeyReference {
  readonly applicationId: string
  /** Null for the application itself, whatever keys it has. */
  readonly keyId: string | null
}

/** The application of a key, or of its session, as cached between requests. */
export interface Principal extends Rights {
  readonly tenantId: string
  readonly plan: Plan
  readonly settings: TenantSettings
  readonly applicationId: string
  /** For a session, its own id. */
  readonly keyId: string
  /**
   * The keys its rights rest on: its own; for a session, the keys that opened and authorized it; for an ephemeral key, its
   * application. Once one of them is revoked, the principal's jobs do not start, and its uncommitted changes cannot be committed.
   */
  readonly keys: readonly KeyReference[]
  /**
   * The upper bound of a session's rights: the current rights of the application that authorized it. Null for all other
   * principals.
   */
  readonly within: Rights | null
  /**
   * The only hosts that something may be sent to for it, each by its name or as `*.` and a suffix, perhaps with a port; null for
   * any. They are those that the tenant and its application both allow; for a session, the application that opened it and the one
   * that authorized it.
   */
  readonly destinations: readonly string[] | null
  /**
   * The only origins whose pages may use its key, such as `https://shop.example`; null for any. For a session, those of the
   * application that opened it.
   */
  readonly allowedOrigins: readonly string[] | null
  /** For a session, the application that granted its rights. */
  readonly grantorId?: string | undefined
  /** Whether the key is ephemeral, issued to code that acts for the application: nothing the code does may prolong it. */
  readonly ephemeral?: true | undefined
}

/** Whether strangers may have its key: it is public, or of a session that no private application has authorized. */
export function isStranger({ type, grantorId }: Pick<Principal, 'type' | 'grantorId'>): boolean {
  return type === 'public' || (type === 'session' && grantorId === undefined)
}

/** Code, run by the service itself, that calls the service, and the destinations it may send to. */
export interface InProcessCaller {
  readonly tenantId: string
  /** As those of a principal. */
  readonly destinations: readonly string[] | null
}

export interface TenantSettings {
  readonly fingerprintTokens: boolean
  readonly deduplicateTokens: boolean
  /** Whether public applications may find duplicates, none of which they may read. */
  readonly deduplicatePublic: boolean
  /** Whether private applications may find duplicates that they may not read. */
  readonly deduplicateUnreadable: boolean
  /** How large the bodies of public applications may be. */
  readonly publicBodyBytesMax: number
  /** The only hosts that something may be sent to for its applications, as those of a principal; each application may allow less. */
  readonly destinations: readonly string[] | null
}

/** Of a new tenant; a setting that is newer than a stored tenant has this value for it. */
export const DEFAULT_TENANT_SETTINGS: TenantSettings = {
  fingerprintTokens: false,
  deduplicateTokens: false,
  deduplicatePublic: false,
  deduplicateUnreadable: true,
  publicBodyBytesMax: PUBLIC_BODY_BYTES_MAX,
  destinations: null,
}

/** The result of one authorization check, kept for the audit log. It names containers and rules, never data. */
export interface Decision {
  readonly permission: Permission
  readonly containers: readonly string[]
  readonly allowed: boolean
  /** Priorities of the rules that decided; 0 stands for the application's own permissions. */
  readonly by: readonly number[]
  /** The resource, if it was about a single one: a UUID of ours, whatever its id. */
  readonly internalId?: string
  /** The id that callers use for that resource: rules may depend on it. Not for the audit log. */
  readonly resourceId?: string
  /** The transform that was granted, whether or not it shows data. Not for the audit log. */
  readonly granted?: Transform
  /** The entity type and operation, if the permission's name does not say them. */
  readonly about?: { readonly entityType: string; readonly operation: string }
  /** How much of that resource's data the caller gets to see. */
  readonly transform?: Transform
  /** Whether it only allowed to replay an earlier answer. */
  readonly replayed?: true
  /** Whether it was a dry run, which sends nothing. */
  readonly dryRun?: true
  /** Destination of the data sent because of it: a host name, and its port unless it is the scheme's default. */
  readonly destination?: string
}

/** The subject of authorization: a principal, and every decision made about what it asks for, in order. */
export interface Subject extends Principal {
  readonly decisions: Decision[]
}

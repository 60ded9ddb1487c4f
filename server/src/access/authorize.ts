import {
  INVOCATIONS,
  TRANSFORMS,
  type Condition,
  type Decision,
  type Permission,
  type Principal,
  type Rights,
  type Rule,
  type Subject,
  type Transform,
} from '../base/access.ts'
import { covers } from './container.ts'
import { permissionMissing } from './permission-missing.ts'
import { mayHold } from './permissions.ts'

/**
 * Authorization: decides whether a caller may use a permission on a resource or in containers, and records the decision in the
 * same call.
 *
 * For one container: the application's rules are checked in the order of their priority, and the first that covers the container
 * and grants the permission decides, with its transform. Then come the application's plain permissions, as if granted on `/` by a
 * last rule with the transform the permission implies. If nothing grants it, it is denied. (That plain permissions come last when
 * there are both is ours: a rule about a container outweighs a permission for all.)
 *
 * For several containers: to create, update or delete a token the permission is needed on every one; to read, use or find it, on
 * any one. When several decide, the most restrictive transform applies (redact, then mask, then reveal): an additional container
 * never shows more of a token. Ours.
 *
 * For no container: the request is not about containers, and holding the permission anywhere suffices.
 *
 * A session has, in each container, only what both its own rights and the current rights of the application that granted them
 * allow there: two containers do not add up if one is allowed by these and the other by those. Of the transforms of both, the most
 * restrictive applies, also where only one of them allows it: a session never sees more than its grantor. Decision 0018.
 *
 * Source: interface.md, Authentication, and its Access section.
 */
export interface Grant {
  /** Limits the data that the caller may see. */
  readonly transform: Transform
  /** Id of the resource it was granted for; undefined if it was about no single one. */
  readonly internalId: string | undefined
}

/** A single resource: a stored token, or something outside all containers, such as a proxy. */
export interface Resource {
  /** A UUID of ours that identifies it in the audit log: never an id that a caller may have made from data. */
  readonly internalId: string
  /** The id that callers use; some rules depend on it. */
  readonly id: string
  readonly containers: readonly string[]
}

/**
 * Decides whether the caller may use `permission` on a resource, or in containers, and records the decision: it goes into the
 * audit log with the caller's next commit, and always before the answer leaves. `destination` is the host that something will be
 * sent to because of it, for the audit log alone.
 *
 * Throws `permission_missing`. Cheap, but not free: callers with thousands of new tokens ask once for each distinct list of
 * containers. Data is opened only with a grant for its own token. A rule with a condition on the id grants nothing if there is no
 * resource yet.
 */
export function authorize(
  context: Subject,
  permission: Permission,
  about: Resource | readonly string[] = NO_CONTAINERS,
  destination?: string,
): Grant {
  const grant = tryAuthorize(context, permission, about, destination)
  if (grant === null) throw permissionMissing(context, permission)
  return grant
}

/** Decides and records as authorize() does; returns null if denied, for requests that go on after a denial. */
export function tryAuthorize(
  context: Subject,
  permission: Permission,
  about: Resource | readonly string[] = NO_CONTAINERS,
  destination?: string,
): Grant | null {
  const thing = 'internalId' in about ? about : undefined
  const containers = 'internalId' in about ? about.containers : about
  const internalId = thing?.internalId
  const { transform, by } = decide(context, permission, containers, thing?.id ?? null)
  const showing = internalId !== undefined && containers.length > 0 && transform !== null
  // Written out: every request runs this, and a spread is measurably slower.
  const decision: { -readonly [Name in keyof Decision]: Decision[Name] } = {
    permission,
    containers,
    allowed: transform !== null,
    by,
  }
  if (thing !== undefined) {
    decision.internalId = internalId!
    decision.resourceId = thing.id
  }
  if (transform !== null) decision.granted = transform
  if (showing) decision.transform = transform
  if (destination !== undefined) decision.destination = destination
  context.decisions.push(decision)
  return transform === null ? null : { transform, internalId }
}

/**
 * Returns the containers at and below which the caller may use `permission`, or null for everywhere, and records the decision:
 * for lists, whose items are each in some container.
 *
 * Rules with conditions beyond the container grant nothing here: an item that is not certainly allowed is not listed. Throws
 * `permission_missing` if the permission is not held at all.
 */
export function visibleContainers(
  context: Subject,
  permission: Permission,
): readonly string[] | null {
  const { transform, by } = decide(context, permission, NO_CONTAINERS, null)
  const paths = containersGranted(context, permission)
  const allowed = transform !== null
  context.decisions.push({ permission, containers: paths, allowed, by })
  if (!allowed) throw permissionMissing(context, permission)
  return paths.includes('/') ? null : paths
}

/**
 * Returns the containers at and below which the caller may use `permission`, as visibleContainers() does but always as a list.
 * Records no decision: for code that limits what it looks for, and records what it finds.
 */
export function containersGranted(
  principal: Pick<Principal, keyof Rights | 'within'>,
  permission: Permission,
): readonly string[] {
  const own = pathsOf(principal, permission)
  const { within } = principal
  return within === null ? own : intersectionOf(own, pathsOf(within, permission))
}

/**
 * Decides whether the caller may read a duplicate that the answer is about, and records that deduplication found it, whether or
 * not any of its data is shown. Returns null if the caller may not read it.
 */
export function authorizeDuplicate(context: Subject, token: Resource): Grant | null {
  const { internalId, containers, id } = token
  const { transform, by } = decide(context, 'token:read', containers, id)
  context.decisions.push({
    permission: 'token:read',
    containers,
    allowed: true,
    by,
    internalId,
    resourceId: id,
    ...(transform === null ? undefined : { granted: transform }),
    transform: transform ?? 'redact',
    about: DEDUPLICATION,
  })
  return transform === null ? null : { transform, internalId }
}

/** Records a duplicate that was withheld from the caller, which got a token of its own or a refusal. */
export function recordWithheldDuplicate(context: Subject, internalId: string): void {
  context.decisions.push({
    permission: 'token:read',
    containers: NO_CONTAINERS,
    allowed: false,
    by: REFUSED.by,
    internalId,
    about: DEDUPLICATION,
  })
}

const DEDUPLICATION = { entityType: 'token', operation: 'deduplicate' } as const

function pathsOf(rights: Rights, permission: Permission): readonly string[] {
  if (holds(rights, rights.permissions, permission)) return ['/']
  const rules = rights.rules.filter((it) => holds(rights, it.permissions, permission))
  return [...new Set(rules.flatMap((it) => pathOf(it) ?? []))]
}

/** Returns the container of a rule, if that is its only condition. */
function pathOf(rule: Rule): string | null {
  if (!('conditions' in rule)) return rule.container
  const [only, ...others] = rule.conditions
  if (only === undefined || others.length > 0) return null
  return only.attribute === 'container' && only.operator === 'starts_with' ? only.value : null
}

function intersectionOf(some: readonly string[], others: readonly string[]): readonly string[] {
  const both = some.flatMap((a) =>
    others.flatMap((b) => (covers(a, b) ? [b] : covers(b, a) ? [a] : [])),
  )
  // Nested containers on both sides repeat: twenty of one side and a hundred of the other give two thousand.
  return [...new Set(both)]
}

/** Whether the permission is granted on any container at all: the coarse check, made before the content of the body is examined. */
export function mayAnywhere(principal: Principal, permission: Permission): boolean {
  return decide(principal, permission, NO_CONTAINERS, null).transform !== null
}

/**
 * Throws `permission_missing`, and records it, if the caller's present rights allow less than one of `grants` did: the grants
 * that an earlier answer rests on, which is about to be repeated. `as` says what the refusal is about.
 */
export function requireGrants(
  context: Subject,
  grants: readonly PastGrant[],
  as: Pick<Decision, 'about' | 'internalId' | 'replayed'> = { replayed: true },
): void {
  for (const { permission, containers, resourceId = null, granted = 'redact' } of grants) {
    const { transform } = decide(context, permission, containers, resourceId)
    if (transform !== null && TRANSFORMS.indexOf(transform) >= TRANSFORMS.indexOf(granted)) continue
    context.decisions.push({ permission, containers, allowed: false, by: [], ...as })
    throw permissionMissing(context, permission)
  }
}

/** A decision that allowed something, as kept with the answer. */
export interface PastGrant extends Pick<Decision, 'permission' | 'containers'> {
  readonly resourceId: string | undefined
  readonly granted: Transform | undefined
}

/** Returns the grants among `decisions`, each once. */
export function grantsAmong(decisions: readonly Decision[]): PastGrant[] {
  const grants = new Map<string, PastGrant>()
  for (const { allowed, permission, containers, resourceId, granted, about } of decisions) {
    if (!allowed) continue
    // A duplicate may be found by a caller that may not read it: there is no grant to decide again.
    if (about === DEDUPLICATION && granted === undefined) continue
    const grant = { permission, containers, resourceId, granted }
    grants.set(JSON.stringify(grant), grant)
  }
  return [...grants.values()]
}

/**
 * Returns the transform that `rights` grant in one container for a token without a known id, or null if denied. Records no
 * decision, since it is for code that compares rights and allows nothing.
 */
export function transformIn(
  rights: Rights,
  permission: Permission,
  container: string,
): Transform | null {
  return decideOne(rights, permission, container, null).transform
}

/** Whether a rule covers the container; with `ANY_ID`, whatever the token's id. */
export function ruleCovers(rule: Rule, container: string, id: string | null | AnyId): boolean {
  if (!('conditions' in rule)) return covers(rule.container, container)
  return rule.conditions.every((it) => isMet(it, container, id))
}

/** Stands for an id that is not known yet and may be any. */
export const ANY_ID = Symbol('any id')
type AnyId = typeof ANY_ID

interface AccessDecision {
  /** Null: denied. */
  readonly transform: Transform | null
  readonly by: readonly number[]
}

function decide(
  principal: Principal,
  permission: Permission,
  containers: readonly string[],
  id: string | null,
): AccessDecision {
  const { within } = principal
  // "On every container" of an empty list would always hold and allow every caller.
  if (containers.length === 0) {
    const own = decideAnywhere(principal, permission)
    return within === null || isGranted(decideAnywhere(within, permission)) ? own : REFUSED
  }
  if (containers.length === 1 && within === null) {
    return decideOne(principal, permission, containers[0]!, id)
  }
  const own = containers.map((it) => decideOne(principal, permission, it, id))
  const grantors =
    within === null ? null : containers.map((it) => decideOne(within, permission, it, id))
  const isAllowed = (it: AccessDecision, at: number): boolean =>
    isGranted(it) && (grantors === null || isGranted(grantors[at]!))
  const enough = NEEDED_ON_EVERY.has(permission) ? own.every(isAllowed) : own.some(isAllowed)
  if (!enough) return REFUSED
  const granted = own.filter(isGranted)
  return {
    transform: leastGenerous([...own, ...(grantors ?? [])].map((it) => it.transform)),
    by: [...new Set(granted.flatMap((it) => it.by))],
  }
}

function isGranted({ transform }: AccessDecision): boolean {
  return transform !== null
}

/** Without containers the request shows no data, so the transform is `redact`. */
function decideAnywhere(rights: Rights, permission: Permission): AccessDecision {
  if (holds(rights, rights.permissions, permission)) {
    return { transform: 'redact', by: OWN_PERMISSIONS }
  }
  const rule = rights.rules.find((it) => holds(rights, it.permissions, permission))
  return rule === undefined ? REFUSED : { transform: 'redact', by: [rule.priority] }
}

function decideOne(
  rights: Rights,
  permission: Permission,
  container: string,
  id: string | null,
): AccessDecision {
  for (const rule of rights.rules) {
    if (ruleCovers(rule, container, id) && holds(rights, rule.permissions, permission)) {
      return { transform: rule.transform, by: [rule.priority] }
    }
  }
  if (!holds(rights, rights.permissions, permission)) return REFUSED
  return { transform: impliedTransform(permission), by: OWN_PERMISSIONS }
}

function isMet(
  { attribute, operator, value }: Condition,
  container: string,
  id: string | null | AnyId,
): boolean {
  if (attribute === 'id' && id === ANY_ID) return true
  const actual = attribute === 'id' ? id : container
  if (typeof actual !== 'string') return false
  return operator === 'equals' ? actual === value : actual.startsWith(value)
}

/** Whether one of `granted` includes `permission`, and the holder's type may hold it. */
export function holds(
  { type }: Pick<Rights, 'type'>,
  granted: readonly Permission[],
  permission: Permission,
): boolean {
  if (granted.includes(permission) && mayHold(type, permission)) return true
  // `token:use` includes these, not the reverse: code that checks for it by name is neither proxy nor reactor.
  if (!INVOCATIONS.has(permission)) return false
  return granted.includes('token:use') && mayHold(type, 'token:use')
}

/** Returns the transform of a plain permission. */
export function impliedTransform(permission: Permission): Transform {
  switch (permission) {
    case 'token:create':
    case 'token:update':
    case 'token:read':
    case 'token:search':
      return 'mask'
    case 'token:use':
    case 'proxy:invoke':
    case 'reactor:invoke':
      return 'reveal'
    default:
      return 'redact'
  }
}

/** Returns the most restrictive transform, of at least one; nulls are ignored. */
function leastGenerous(transforms: readonly (Transform | null)[]): Transform {
  return TRANSFORMS.find((it) => transforms.includes(it))!
}

const NO_CONTAINERS: readonly string[] = []
const OWN_PERMISSIONS: readonly number[] = [0]
const REFUSED: AccessDecision = { transform: null, by: [] }
const NEEDED_ON_EVERY: ReadonlySet<Permission> = new Set<Permission>([
  'token:create',
  'token:update',
  'token:delete',
])

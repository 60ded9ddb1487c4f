import type { Caller, Decision, Permission, Principal, Transform } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import { covers } from './container.ts'
import { mayHold } from './permissions.ts'

/**
 * Who may do what, where: the one gesture that decides and records at once.
 *
 * For one container: the application's rules are asked in the order of their priority, and the first
 * that covers the container and grants the permission decides, with its transform. Then come the
 * application's plain permissions, as if granted on `/` by a last rule with the transform the
 * permission implies. Nobody granted it: no. (That plain permissions come last when there are both is
 * ours: what was said about a container outweighs what was said about all.)
 *
 * For several containers: to create, update or delete a token the permission is needed on every one;
 * to read, use or find it, on any one. When several decide, the least generous transform counts
 * (redact, then mask, then reveal): being in one more container never shows more of a token. Ours.
 *
 * For none: the question is not about containers, and holding the permission anywhere answers it.
 *
 * Source: interface.md, Authentication, and its Access section.
 */
export interface Grant {
  /** What the caller may see of the data. */
  readonly transform: Transform
  /** What it was given for; undefined where the question was about no single thing. */
  readonly serial: string | undefined
}

/** A single thing in question, such as a stored token. */
export interface Thing {
  /** A uuid of ours that stands for it in the record: never an id that a caller may have made of data. */
  readonly serial: string
  readonly containers: readonly string[]
}

/**
 * Decides whether `caller` may use `permission` on a thing, or in containers, and records the decision: it
 * is in the record with the caller's next commit, and always before the answer leaves.
 *
 * Throws `permission_missing`. Cheap, but not free: callers with thousands of new tokens ask once for each
 * distinct list of containers. Data is opened only with a grant for its own token.
 */
export function authorize(
  caller: Caller,
  permission: Permission,
  about: Thing | readonly string[] = NO_CONTAINERS,
): Grant {
  const grant = ask(caller, permission, about)
  if (grant === null) throw new ServiceError('permission_missing', { permission: [permission] })
  return grant
}

/** Decides and records as authorize() does; returns null where a "no" is not the end of the request. */
export function ask(
  caller: Caller,
  permission: Permission,
  about: Thing | readonly string[] = NO_CONTAINERS,
): Grant | null {
  const serial = 'serial' in about ? about.serial : undefined
  const containers = 'serial' in about ? about.containers : about
  const { transform, by } = decide(caller, permission, containers)
  const decision: Decision = { permission, containers, allowed: transform !== null, by }
  if (serial === undefined) caller.decisions.push(decision)
  else caller.decisions.push({ ...decision, serial, ...(transform !== null && { transform }) })
  return transform === null ? null : { transform, serial }
}

/**
 * Decides where `caller` may use `permission`, and records the decision: for lists, of which each item is
 * in some container. Returns the containers at and below which it may, or null for everywhere.
 *
 * Throws `permission_missing` when it is nowhere.
 */
export function reachOf(caller: Caller, permission: Permission): readonly string[] | null {
  const own = holds(caller, caller.permissions, permission)
  const rules = own ? [] : caller.rules.filter((it) => holds(caller, it.permissions, permission))
  const paths = own ? ['/'] : [...new Set(rules.map((it) => it.container))]
  const allowed = paths.length > 0
  const by = own ? OWN_PERMISSIONS : rules.map((it) => it.priority)
  caller.decisions.push({ permission, containers: paths, allowed, by })
  if (!allowed) throw new ServiceError('permission_missing', { permission: [permission] })
  return paths.includes('/') ? null : paths
}

/**
 * Whether the permission is granted on any container at all: the coarse question, asked at the door
 * before anybody asks what is in a body.
 */
export function mayAnywhere(principal: Principal, permission: Permission): boolean {
  return decideAnywhere(principal, permission).transform !== null
}

interface Verdict {
  /** Null: no. */
  readonly transform: Transform | null
  readonly by: readonly number[]
}

function decide(
  principal: Principal,
  permission: Permission,
  containers: readonly string[],
): Verdict {
  // Not "on every container of none", which would be a yes to everybody.
  if (containers.length === 0) return decideAnywhere(principal, permission)
  const first = decideOne(principal, permission, containers[0]!)
  if (containers.length === 1) return first
  const verdicts = [first]
  for (let at = 1; at < containers.length; at++) {
    verdicts.push(decideOne(principal, permission, containers[at]!))
  }
  const granted = verdicts.filter((it) => it.transform !== null)
  const enough = NEEDED_ON_EVERY.has(permission)
    ? granted.length === verdicts.length
    : granted.length > 0
  if (!enough) return REFUSED
  return {
    transform: LEAST_GENEROUS_FIRST.find((it) =>
      granted.some(({ transform }) => transform === it),
    )!,
    by: [...new Set(granted.flatMap((it) => it.by))],
  }
}

/** There is no data in question, so a yes shows none. */
function decideAnywhere(principal: Principal, permission: Permission): Verdict {
  if (holds(principal, principal.permissions, permission)) {
    return { transform: 'redact', by: OWN_PERMISSIONS }
  }
  const rule = principal.rules.find((it) => holds(principal, it.permissions, permission))
  return rule === undefined ? REFUSED : { transform: 'redact', by: [rule.priority] }
}

function decideOne(principal: Principal, permission: Permission, container: string): Verdict {
  for (const rule of principal.rules) {
    if (covers(rule.container, container) && holds(principal, rule.permissions, permission)) {
      return { transform: rule.transform, by: [rule.priority] }
    }
  }
  if (!holds(principal, principal.permissions, permission)) return REFUSED
  return { transform: impliedTransform(permission), by: OWN_PERMISSIONS }
}

/** Whether one of `granted` amounts to `permission` and is of a kind the principal may hold. */
function holds(
  principal: Principal,
  granted: readonly Permission[],
  permission: Permission,
): boolean {
  if (granted.includes(permission) && mayHold(principal.type, permission)) return true
  // To use tokens is to use them anywhere, so the newer, narrower permissions are implied by it. The
  // reverse does not hold: what asks for `token:use` itself is neither proxy nor reactor.
  if (permission !== 'proxy:invoke' && permission !== 'reactor:invoke') return false
  return granted.includes('token:use') && mayHold(principal.type, 'token:use')
}

function impliedTransform(permission: Permission): Transform {
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

const NO_CONTAINERS: readonly string[] = []
const OWN_PERMISSIONS: readonly number[] = [0]
const REFUSED: Verdict = { transform: null, by: [] }
const LEAST_GENEROUS_FIRST: readonly Transform[] = ['redact', 'mask', 'reveal']
const NEEDED_ON_EVERY: ReadonlySet<Permission> = new Set<Permission>([
  'token:create',
  'token:update',
  'token:delete',
])

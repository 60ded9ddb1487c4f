import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../test/kit/fast-check.ts'
import { contextWith } from '../../../test/kit/still-world.ts'
import {
  CONDITION_OPERATORS,
  TRANSFORMS,
  type Condition,
  type ConditionalRule,
  type AccessRule,
  type Permission,
  type Rights,
  type Rule,
  type Transform,
} from '../../base/access.ts'
import { tryAuthorize, type Resource } from '../authorize.ts'
import { excessOf } from './excess.ts'

const PERMISSIONS: readonly Permission[] = [
  'token:create',
  'token:read',
  'token:delete',
  'token:use',
  'proxy:invoke',
]
const PLACES = ['/', '/a/', '/a/b/', '/a/b/c/', '/ab/', '/b/']
const IDS = ['x', 'xy', 'y']

test('whatever session and grantor: in no list of containers, for no id, the session gets more', () => {
  let granted = 0
  fc.assert(
    fc.property(
      session(),
      grantor(),
      permission(),
      places(),
      id(),
      (own, within, what, where, which) => {
        const given = tryAuthorize(contextWith({ ...own, within }), what, about(where, which))
        if (given === null) return
        granted++
        const grantors = tryAuthorize(contextWith({ ...within }), what, about(where, which))
        assert.ok(grantors !== null, 'the grantor may not do it')
        assert.ok(rank(given.transform) <= rank(grantors.transform), 'the grantor sees less')
      },
    ),
    { numRuns: 5_000 },
  )
  assert.ok(granted > 100, `only ${granted} were granted anything`)
})

test('without excess, a session gets in each container what it was given, and not a bit less', () => {
  let compared = 0
  fc.assert(
    fc.property(session(), grantor(), place(), id(), (own, within, where, which) => {
      const excess = excessOf(own, within)
      for (const what of PERMISSIONS) {
        if (excess.includes(what) || what === 'token:delete') continue
        const given = tryAuthorize(
          contextWith({ ...own, within: null }),
          what,
          about([where], which),
        )
        const held = tryAuthorize(contextWith({ ...own, within }), what, about([where], which))
        assert.deepEqual(held, given)
        if (given !== null) compared++
      }
    }),
    { numRuns: 5_000 },
  )
  assert.ok(compared > 100, `only ${compared} were granted anything`)
})

test('without conditions on ids, excess is never claimed without a place where there is one', () => {
  let found = 0
  fc.assert(
    fc.property(sessionOfPlaces(), grantor(), (own, within) => {
      for (const what of excessOf(own, within)) {
        found++
        const somewhere = PLACES.flatMap((it) => [it, `${it}other/`]).some((where) => {
          const given = tryAuthorize(contextWith({ ...own, within: null }), what, [where])
          const held = tryAuthorize(contextWith({ ...own, within }), what, [where])
          return given?.transform !== held?.transform
        })
        assert.ok(somewhere, what)
      }
    }),
    { numRuns: 2_000 },
  )
  assert.ok(found > 100, `only ${found} were found`)
})

test('a grantor that grants exactly its own rights grants nothing in excess', () => {
  fc.assert(
    fc.property(grantor(), (it) => {
      assert.deepEqual(excessOf({ ...it, type: 'session' }, it), [])
    }),
  )
})

function rank(transform: Transform): number {
  return TRANSFORMS.indexOf(transform)
}

function permission(): fc.Arbitrary<Permission> {
  return fc.constantFrom(...PERMISSIONS)
}

function place(): fc.Arbitrary<string> {
  return fc.constantFrom(...PLACES, '/a/other/', '/other/')
}

function places(): fc.Arbitrary<string[]> {
  return fc.uniqueArray(place(), { minLength: 1, maxLength: 3 })
}

function id(): fc.Arbitrary<string | null> {
  return fc.constantFrom(...IDS, 'other', null)
}

function grantor(): fc.Arbitrary<Rights> {
  return rightsOf('private', containerRule())
}

function sessionOfPlaces(): fc.Arbitrary<Rights> {
  const conditions = condition('container', PLACES).map((it) => [it])
  const conditional = fc.record({ ...rest(), conditions })
  return rightsOf('session', fc.oneof(containerRule(), conditional))
}

function session(): fc.Arbitrary<Rights> {
  return rightsOf('session', fc.oneof(containerRule(), conditionalRule()))
}

function rightsOf(type: Rights['type'], rule: fc.Arbitrary<Rule>): fc.Arbitrary<Rights> {
  return fc.record({
    type: fc.constant(type),
    permissions: fc.uniqueArray(permission(), { maxLength: 2 }),
    rules: fc
      .array(rule, { maxLength: 4 })
      .map((rules) => rules.map((it, at) => ({ ...it, priority: at + 1 }))),
  })
}

function rest() {
  return {
    description: fc.constant(''),
    priority: fc.constant(1),
    transform: fc.constantFrom(...TRANSFORMS),
    permissions: fc.uniqueArray(permission(), { minLength: 1, maxLength: 3 }),
  }
}

function containerRule(): fc.Arbitrary<AccessRule> {
  return fc.record({ ...rest(), container: fc.constantFrom(...PLACES) })
}

function conditionalRule(): fc.Arbitrary<ConditionalRule> {
  const onContainer = condition('container', PLACES)
  const onId = condition('id', IDS)
  return fc.record({
    ...rest(),
    conditions: fc.oneof(
      onContainer.map((it) => [it]),
      onId.map((it) => [it]),
      fc.tuple(onId, onContainer),
      fc.tuple(onContainer, onContainer),
    ),
  })
}

function condition(
  attribute: Condition['attribute'],
  values: readonly string[],
): fc.Arbitrary<Condition> {
  return fc.record({
    attribute: fc.constant(attribute),
    operator: fc.constantFrom(...CONDITION_OPERATORS),
    value: fc.constantFrom(...values),
  })
}

/** A token of this id in these containers, or just the containers. */
function about(containers: readonly string[], id: string | null): Resource | readonly string[] {
  return id === null ? containers : { internalId: 'any', id, containers }
}

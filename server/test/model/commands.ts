/** Commands of the model test: each changes the model and sends the vault a request, and the two must agree. */
import * as fc from '../kit/fast-check.ts'
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Model, ModelChange, ModelToken, Within } from './model.ts'
import type { Real, RealReply } from './real.ts'

export type ModelCommand = fc.AsyncCommand<Model, Real>

const HOUR_MS = 60 * 60 * 1000
/** More than the store commits at once. */
const LONG = 300
const UNIQUE = { deduplicate_token: true, fingerprint_expression: '{{ data }}' }

/** So few of each that they meet. */
const NAMES = ['own-0', 'own-1', 'own-2']
const pick = fc.nat(7)
const value = fc.constantFrom('a', 'b', 'c')
/** Which of the transactions there are; beyond them, none. */
const within = fc.nat(5)

export const anyCommands = fc.commands<Model, Real, false>(
  [
    fc
      .record({
        within,
        value,
        name: fc.option(fc.constantFrom(...NAMES), { freq: 3 }),
        unique: fc.boolean(),
        ends: fc.boolean(),
      })
      .map((it) => command('create', it, create)),
    fc
      .record({ within, values: fc.array(value, { minLength: 1, maxLength: 4 }), long: fc.nat(9) })
      .map((it) => command('tokenize', it, tokenize)),
    fc
      .record({
        within,
        pick,
        value: fc.option(value),
        end: fc.constantFrom('keep', 'none', 'soon'),
      })
      .map((it) => command('update', it, update)),
    fc.record({ within, pick }).map((it) => command('delete', it, remove)),
    fc.record({ within, pick }).map((it) => command('get', it, get)),
    fc.constant(command('open', {}, open)),
    fc.record({ pick }).map((it) => command('commit', it, ending('committed', 'commit'))),
    fc.record({ pick }).map((it) => command('rollback', it, ending('rolled_back', 'rollback'))),
    fc
      .record({ ms: fc.constantFrom(1, HOUR_MS / 4, HOUR_MS) })
      .map((it) => command('advance', it, advance)),
    fc.constant(command('sweep', {}, sweep)),
    fc.constant(command('restart', {}, restart)),
  ],
  { maxCommands: 40, size: 'max' },
)

/** Asserts that every token any caller ever learned of is as in the model. */
export async function agree(model: Model, real: Real): Promise<void> {
  for (const id of model.known) {
    const reply = await real.send('GET', `/tokens/${id}`, null)
    const token = model.seen(null).get(id)
    assert.equal(reply.status, token === undefined ? 404 : 200, id)
    if (token !== undefined) assert.equal((reply.body as JsonObject)['data'], token.value)
  }
}

function command<Input>(
  name: string,
  input: Input,
  run: (model: Model, real: Real, input: Input) => Promise<void>,
): ModelCommand {
  return {
    check: () => true,
    run: async (model, real) => {
      // No two tokens are made in the same millisecond, so that one is the older.
      real.pass(1)
      model.now = real.now()
      await run(model, real, input)
    },
    toString: () => `${name} ${JSON.stringify(input)}`,
  }
}

async function create(
  model: Model,
  real: Real,
  it: { within: number; value: string; name: string | null; unique: boolean; ends: boolean },
): Promise<void> {
  const inside = transactionAt(model, it.within)
  const ends = it.ends ? model.now + HOUR_MS / 2 : Infinity
  const reply = await real.send('POST', '/tokens', inside, {
    data: it.value,
    ...(it.name === null ? {} : { id: it.name }),
    ...(it.unique ? UNIQUE : {}),
    ...(it.ends ? { expires_at: new Date(ends).toISOString() } : {}),
  })
  if (refusedByState(model, inside, reply)) return
  const duplicate = it.unique ? model.duplicateOf(it.value, inside) : undefined
  if (duplicate !== undefined) {
    expect(reply, 201)
    assert.equal(idOf(reply), duplicate)
    return
  }
  if (it.name !== null && model.taken(it.name)) return expect(reply, 409, 'token_id_taken')
  expect(reply, 201)
  const id = idOf(reply)
  if (it.name !== null) assert.equal(id, it.name)
  add(model, id, { value: it.value, ends, unique: it.unique }, inside)
}

async function tokenize(
  model: Model,
  real: Real,
  it: { within: number; values: string[]; long: number },
): Promise<void> {
  const inside = transactionAt(model, it.within)
  const filler = it.long === 0 ? Array<string>(LONG).fill('filler') : []
  const values = [...it.values, ...filler]
  const reply = await real.send('POST', '/tokenize', inside, values)
  if (refusedByState(model, inside, reply)) return
  expect(reply, 200)
  const ids = reply.body as string[]
  for (const [n, id] of ids.slice(0, it.values.length + 1).entries()) {
    add(model, id, { value: values[n]!, ends: Infinity, unique: false }, inside)
  }
}

async function update(
  model: Model,
  real: Real,
  it: { within: number; pick: number; value: string | null; end: string },
): Promise<void> {
  const inside = transactionAt(model, it.within)
  const id = tokenAt(model, it.pick)
  if (id === undefined) return
  const soon = model.now + HOUR_MS / 3
  const reply = await real.send('PATCH', `/tokens/${id}`, inside, {
    ...(it.value === null ? {} : { data: it.value }),
    ...(it.end === 'none' ? { expires_at: null } : {}),
    ...(it.end === 'soon' ? { expires_at: new Date(soon).toISOString() } : {}),
  })
  if (refusedByState(model, inside, reply)) return
  const before = model.seen(inside).get(id)
  if (before === undefined) return expect(reply, 404, 'token_not_found')
  if (model.locked(id, inside)) return expect(reply, 409, 'token_locked')
  const changes = it.value !== null && it.value !== before.value
  const duplicate = before.unique && changes ? model.duplicateOf(it.value!, inside, id) : undefined
  expect(reply, 200)
  assert.equal(idOf(reply), duplicate ?? id)
  if (duplicate !== undefined) return
  const ends = it.end === 'none' ? Infinity : it.end === 'soon' ? soon : asAsked(model, id, inside)
  model.put(id, { ...before, value: it.value ?? before.value, ends }, inside)
}

async function remove(
  model: Model,
  real: Real,
  it: { within: number; pick: number },
): Promise<void> {
  const inside = transactionAt(model, it.within)
  const id = tokenAt(model, it.pick)
  if (id === undefined) return
  const reply = await real.send('DELETE', `/tokens/${id}`, inside)
  if (refusedByState(model, inside, reply)) return
  if (!model.seen(inside).has(id)) return expect(reply, 404, 'token_not_found')
  if (model.locked(id, inside)) return expect(reply, 409, 'token_locked')
  expect(reply, 204)
  model.put(id, null, inside)
}

/** The header means nothing here. */
async function get(model: Model, real: Real, it: { within: number; pick: number }): Promise<void> {
  const id = tokenAt(model, it.pick)
  if (id === undefined) return
  const reply = await real.send('GET', `/tokens/${id}`, transactionAt(model, it.within))
  const token = model.seen(null).get(id)
  if (token === undefined) return expect(reply, 404, 'token_not_found')
  expect(reply, 200)
  assert.equal((reply.body as JsonObject)['data'], token.value)
}

async function open(model: Model, real: Real): Promise<void> {
  const reply = await real.send('POST', '/transactions', null)
  expect(reply, 201)
  const transaction = {
    state: 'open',
    ends: model.now + HOUR_MS,
    made: new Map<string, ModelToken>(),
    changed: new Map<string, ModelChange>(),
  } as const
  model.transactions.set(idOf(reply), { ...transaction })
}

function ending(as: 'committed' | 'rolled_back', how: string) {
  return async (model: Model, real: Real, it: { pick: number }): Promise<void> => {
    const id = [...model.transactions.keys()].at(-1 - (it.pick % 4))
    if (id === undefined) return
    const reply = await real.send('POST', `/transactions/${id}/${how}`, null)
    const state = model.state(id)
    if (state !== 'open') return expect(reply, 409, `transaction_${state}`)
    expect(reply, 200)
    model.end(id, as)
  }
}

async function advance(model: Model, real: Real, { ms }: { ms: number }): Promise<void> {
  real.pass(ms)
  model.now = real.now()
}

async function sweep(model: Model, real: Real): Promise<void> {
  await real.sweep()
  model.sweep()
}

async function restart(_model: Model, real: Real): Promise<void> {
  await real.restart()
}

/** One of the last few transactions, open or not, or none. */
function transactionAt(model: Model, n: number): Within {
  return n < 3 ? ([...model.transactions.keys()].at(-1 - n) ?? null) : null
}

/** One of the last few tokens. */
function tokenAt(model: Model, n: number): string | undefined {
  return [...model.known].at(-1 - n)
}

/** Returns the requested expiry; the effective one stays earlier while the old expiry is earlier. */
function asAsked(model: Model, id: string, within: Within): number {
  const transaction = within === null ? undefined : model.transactions.get(within)
  const there = model.there.get(id)
  const change = transaction?.changed.get(id)
  const changed = change !== undefined && change.of === there?.born ? change.to : null
  return (transaction?.made.get(id) ?? changed ?? there)!.ends
}

function add(model: Model, id: string, token: Omit<ModelToken, 'born'>, inside: Within): void {
  // The last one known is the likeliest to be picked.
  model.known.delete(id)
  model.known.add(id)
  model.put(id, { ...token, born: model.born++ }, inside)
}

function refusedByState(model: Model, inside: Within, reply: RealReply): boolean {
  if (inside === null || model.state(inside) === 'open') return false
  expect(reply, 409, `transaction_${model.state(inside)}`)
  return true
}

function expect({ status, body }: RealReply, expected: number, code?: string): void {
  assert.equal(status, expected, JSON.stringify(body))
  if (code !== undefined) assert.equal((body as JsonObject)['code'], code)
}

function idOf({ body }: RealReply): string {
  return (body as { id: Json })['id'] as string
}

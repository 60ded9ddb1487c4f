import assert from 'node:assert/strict'
import { send } from '../rotation/one-of-each.ts'
import { ASKED_ONCE, ONCE, DUPLICATE, type Furnished } from './furnish.ts'

interface BehaviourAnswer {
  readonly asked: string
  readonly status: number
  readonly body: unknown
}

type RequestOptions = [body?: object, headers?: Record<string, string>]

/** Queries a vault for everything furnish() made and continues everything begun there; returns every response. */
export async function behaviour(url: string, made: Furnished): Promise<BehaviourAnswer[]> {
  const { owner, management, tokens } = made
  const answers: BehaviourAnswer[] = []
  const ask = async (
    key: string,
    method: string,
    path: string,
    ...more: RequestOptions
  ): Promise<void> => {
    const { status, text } = await send(url, method, path, key, ...more)
    const body: unknown = text === '' ? null : JSON.parse(text)
    answers.push({ asked: `${method} ${path}`, status, body })
  }
  const look = async (): Promise<void> => {
    await ask(management, 'GET', '/tenants/self/reports/usage')
    for (const id of Object.values(tokens)) {
      await ask(owner, 'GET', `/tokens/${encodeURIComponent(id)}`)
    }
    await ask(owner, 'GET', '/tokens?size=100')
    await ask(owner, 'GET', '/tokens?size=100&page=4')
    await ask(owner, 'GET', '/v2/tokens?size=20')
    for (const query of ['data:"value 7"', 'data:before', 'metadata.of:Y', 'metadata.2:ä']) {
      await ask(owner, 'POST', '/tokens/search', { query })
    }
  }

  await look()
  for (const list of ['/applications', '/applications/key', '/tenants/self']) {
    await ask(management, 'GET', list)
  }
  await ask(made.session, 'GET', `/tokens/${tokens.shown}`)
  await ask(made.other, 'GET', `/tokens/${encodeURIComponent(tokens.named)}`)
  await ask(made.other, 'GET', `/tokens/${tokens.shown}`)
  await ask(made.gone, 'GET', '/tenants/self')
  await ask(owner, 'POST', '/tokens', ASKED_ONCE, ONCE)
  await ask(owner, 'POST', '/tokens', DUPLICATE)
  await ask(owner, 'POST', '/tokens', { type: 'token', data: 'x', id: tokens.shown })
  await ask(owner, 'PATCH', `/tokens/${tokens.changing}`, { data: 'locked' })
  await ask(owner, 'POST', `/transactions/${made.transaction}/commit`)
  await look()
  // So that two vaults that know nothing are not taken for equal.
  assert.deepEqual(
    answers.slice(LOOKS + 3, -LOOKS).map((it) => it.status),
    [200, 200, 404, 401, 201, 201, 409, 409, 200],
  )
  assert.deepEqual(answers.slice(LOOKS - 4, LOOKS).map(foundIn), [1, 1, 0, 1])
  assert.deepEqual(answers.slice(-4).map(foundIn), [1, 0, 1, 1])
  return answers
}

/** Answers of a look. */
const LOOKS = 12

function foundIn({ body }: BehaviourAnswer): unknown {
  return (body as { readonly pagination?: { readonly total_items: number } }).pagination
    ?.total_items
}

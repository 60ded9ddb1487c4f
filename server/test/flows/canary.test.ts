import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Sensitive } from '../../src/base/sensitive.ts'
import type { Keyring, TenantKeys } from '../../src/ports/keyring.ts'
import type { World } from '../../src/ports/world.ts'
import { SEED } from '../kit/seed.ts'
import { TransparentKeyring } from '../kit/transparent-keyring.ts'
import { runCanary } from './canary.ts'

for (const store of ['sqlite', 'postgres'] as const) {
  test(`what goes in comes out again, and no canary gets anywhere else: ${store}`, async (t) => {
    const report = await runCanary({ payloads: 100, seed: SEED, store })
    t.diagnostic(JSON.stringify(report))
    assert.ok(report.tokens > 50, `it made ${report.tokens} tokens`)
    assert.ok(report.refusals > 5, `it was refused ${report.refusals} times`)
  })
}

describe('runCanary() rejects when', () => {
  const transparent = (world: World): World => {
    return { ...world, keyring: new TransparentKeyring((id) => world.store.tenants.keys(id)) }
  }
  const leaks: [name: string, change: (world: World) => World, message: RegExp][] = [
    ['the store is given plaintext', transparent, /a canary is in .*symbolon\.db/],
    [
      'plaintext is logged, if only once',
      (world) => {
        let logged = false
        return sealing(world, (plaintext) => {
          if (logged) return
          logged = /[A-Za-z0-9]{12}/.test(plaintext)
          world.log.info('sealing', { data: Buffer.from(plaintext).toString('base64') })
        })
      },
      /a canary is in log: \w+, base64/,
    ],
    [
      'plaintext is in an error',
      (world) => {
        return sealing(world, (plaintext) => {
          throw new Error(plaintext)
        })
      },
      /It failed: 500/,
    ],
    [
      'other data comes back than was sent',
      (world) =>
        opening(world, (plaintext) =>
          plaintext.replace(/true|false|null|[a-z]/, (it) =>
            it === 'true' ? 'false' : it.length > 1 ? 'true' : 'q',
          ),
        ),
      // Or it is a remembered answer, or the data is no longer of its type, and cannot be shown at all.
      /what came back is not what was sent|got another answer|It failed: 500/,
    ],
  ]
  for (const [name, change, message] of leaks) {
    test(name, async () => {
      await assert.rejects(runCanary({ payloads: 40, seed: SEED, change }), message)
    })
  }

  test('a database is given plaintext: in its files and in its rows', async () => {
    const options = { payloads: 40, seed: SEED, change: transparent, store: 'postgres' } as const
    await assert.rejects(
      runCanary(options),
      /a canary is in (?=.*\b[0-9A-F]{24}: ).*table tokens: \w+, hex/,
    )
  })
})

/** The world with a keyring that shows what it seals. */
function sealing(world: World, look: (plaintext: string) => void): World {
  return withKeys(world, (keys) => ({
    seal: (context, plaintext) => {
      if (context.part === 'data') look(plaintext.reveal())
      return keys.seal(context, plaintext)
    },
    open: (context, envelope) => keys.open(context, envelope),
    fingerprint: (scope, value) => keys.fingerprint(scope, value),
    index: (value) => keys.index(value),
    attest: (statement) => keys.attest(statement),
    attests: (statement, proof) => keys.attests(statement, proof),
  }))
}

/** The world with a keyring that changes what it opens. */
function opening(world: World, change: (plaintext: string) => string): World {
  return withKeys(world, (keys) => ({
    seal: (context, plaintext) => keys.seal(context, plaintext),
    open: (context, envelope) => new Sensitive(change(keys.open(context, envelope).reveal())),
    fingerprint: (scope, value) => keys.fingerprint(scope, value),
    index: (value) => keys.index(value),
    attest: (statement) => keys.attest(statement),
    attests: (statement, proof) => keys.attests(statement, proof),
  }))
}

function withKeys(world: World, wrap: (keys: TenantKeys) => TenantKeys): World {
  const keyring: Keyring = {
    create: (tenantId, now) => world.keyring.create(tenantId, now),
    open: async (tenantId) => wrap(await world.keyring.open(tenantId)),
    forget: (tenantId) => world.keyring.forget(tenantId),
  }
  return { ...world, keyring }
}

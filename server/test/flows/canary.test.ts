import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Sensitive } from '../../src/base/sensitive.ts'
import type { Keyring, TenantKeys } from '../../src/ports/keyring.ts'
import type { World } from '../../src/ports/world.ts'
import { canaryOf, findTrace, findTracesInFiles, PORTION_BYTES, tracesOf } from '../kit/canary.ts'
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

describe('findTracesInFiles() finds a canary', () => {
  const canary = canaryOf(1)
  const secret = `${canary.text}-and-more`
  const numbers = `${canary.digits}1234`

  const written: [name: string, write: (text: string) => string | Buffer][] = [
    ['as it is', (text) => text],
    ['in UTF-16', (text) => Buffer.from(text, 'utf16le')],
    ['in UTF-16, big end first', (text) => Buffer.from(text, 'utf16le').swap16()],
    ['in hex', (text) => Buffer.from(text).toString('hex')],
    ['in hex in capitals', (text) => Buffer.from(text).toString('hex').toUpperCase()],
    ['in base64', (text) => btoa(text)],
    ['in base64 after one byte', (text) => btoa(`x${text}`)],
    ['in base64 after two bytes', (text) => btoa(`xy${text}`)],
    [
      'in base64 in the middle of much',
      (text) => btoa(`${'z'.repeat(1000)}${text}${'z'.repeat(1000)}`),
    ],
    ['in base64url', (text) => Buffer.from(`?${text}~`).toString('base64url')],
    ['in a URL', (text) => `/search?q=${encodeURIComponent(` ${text}/ü`)}`],
    [
      'in a URL that encodes everything',
      (text) => text.replaceAll(/./g, (it) => `%${it.charCodeAt(0).toString(16)}`),
    ],
    ['in JSON', (text) => JSON.stringify({ a: [`"${text}\n`] })],
    [
      'in JSON that escapes everything',
      (text) =>
        text.replaceAll(/./g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`),
    ],
    ['in a list of bytes', (text) => JSON.stringify([...Buffer.from(text)])],
  ]
  for (const [name, write] of written) {
    for (const [kind, text] of [
      ['text', secret],
      ['digits', numbers],
    ] as const) {
      test(`${name}: ${kind}`, () => {
        inFolder((folder) => {
          const noise = Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 7919) % 251))
          writeFileSync(join(folder, 'clean'), noise)
          assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), [])
          writeFileSync(
            join(folder, 'page'),
            Buffer.concat([noise, Buffer.from(write(text)), noise]),
          )
          const [found, ...others] = findTracesInFiles(tracesOf(canary), folder)
          assert.match(found!, new RegExp(`^page: ${kind}, `))
          assert.deepEqual(others, [])
        })
      })
    }
  }

  test('across the portions in which a file is read', () => {
    inFolder((folder) => {
      const file = Buffer.alloc(PORTION_BYTES * 2)
      file.write(secret, PORTION_BYTES - 6)
      writeFileSync(join(folder, 'large'), file)
      assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), ['large: text, as it is'])
    })
  })

  test('at the very end of a file in a folder inside', () => {
    inFolder((folder) => {
      const inner = mkdtempSync(join(folder, 'inner-'))
      writeFileSync(join(inner, 'small'), `x${canary.text}`)
      assert.deepEqual(findTracesInFiles(tracesOf(canary), folder), ['small: text, as it is'])
    })
  })

  test('and not that of another run', () => {
    assert.equal(findTrace(tracesOf(canaryOf(2)), Buffer.from(secret + numbers)), null)
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

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-traces-'))
  try {
    work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

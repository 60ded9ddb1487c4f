import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Sensitive } from '../../base/sensitive.ts'
import type { SealContext, TenantKeyPurpose } from '../../ports/keyring.ts'
import { FileKeyProvider } from './file-key-provider.ts'
import { LocalKeyring } from './local-keyring.ts'

test('a root key has the id it always had', async (t) => {
  const provider = await openRoot(t)
  assert.equal(provider.id, VECTORS.rootKeyId)
})

test('envelopes made once open for ever', async (t) => {
  const keys = await openKeys(t)
  for (const { comment, context, plaintext, envelope } of VECTORS.envelopes) {
    assert.equal(keys.open(context, Buffer.from(envelope, 'hex')).reveal(), plaintext, comment)
  }
})

test('seal() writes the form that is described, byte for byte', async (t) => {
  for (const { comment, version, context, plaintext, nonce, envelope } of VECTORS.envelopes) {
    const keys = await openKeys(t, version, nonce)
    const sealed = Buffer.from(keys.seal(context, new Sensitive(plaintext)))
    assert.equal(sealed.toString('hex'), envelope, comment)
  }
})

test('fingerprints and indexes made once are found for ever', async (t) => {
  const keys = await openKeys(t)
  for (const { scope, value, fingerprint } of VECTORS.fingerprints) {
    assert.equal(keys.fingerprint(scope, new Sensitive(value)), fingerprint)
  }
  for (const { value, index } of VECTORS.indexes) {
    assert.equal(Buffer.from(keys.index(new Sensitive(value))).toString('hex'), index)
  }
})

/** Opens the tenant's keys up to a version of the data key, with a known nonce. */
async function openKeys(t: TestContext, versionMax = 2, nonce = '') {
  const wrapped = VECTORS.keys
    .filter((it) => it.version <= versionMax)
    .map((it) => ({ ...it, wrapped: Buffer.from(it.wrapped, 'hex'), createdAt: 0 }))
  const random = { bytes: () => Buffer.from(nonce, 'hex') }
  return new LocalKeyring(await openRoot(t), random, async () => wrapped).open(VECTORS.tenantId)
}

async function openRoot(t: TestContext): Promise<FileKeyProvider> {
  const folder = mkdtempSync(join(tmpdir(), 'symbolon-root-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'root.key')
  writeFileSync(path, Buffer.from(VECTORS.rootKey, 'hex'), { mode: 0o600 })
  return FileKeyProvider.open(path, { createIfMissing: false })
}

interface Vectors {
  readonly rootKey: string
  readonly rootKeyId: string
  readonly tenantId: string
  readonly keys: readonly { purpose: TenantKeyPurpose; version: number; wrapped: string }[]
  readonly envelopes: readonly {
    comment: string
    version: number
    context: SealContext
    nonce: string
    plaintext: string
    envelope: string
  }[]
  readonly fingerprints: readonly { scope: string; value: string; fingerprint: string }[]
  readonly indexes: readonly { value: string; index: string }[]
}

const VECTORS = JSON.parse(
  readFileSync(new URL('../../../test/vectors/envelopes/version-1.json', import.meta.url), 'utf8'),
) as Vectors

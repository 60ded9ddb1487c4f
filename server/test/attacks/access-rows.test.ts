/** An attacker who can write to the database, and has old copies of it, but has no key, changes who may do what. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { hashApiKey, makeApiKey } from '../../src/access/api-key.ts'
import {
  createApplicationKey,
  deleteApplicationKey,
} from '../../src/access/applications/application-keys.ts'
import { createIdentities } from '../../src/access/authenticate.ts'
import { createApplication } from '../../src/access/applications/create-application.ts'
import { regenerateKey } from '../../src/access/applications/regenerate-key.ts'
import { authorizeSession } from '../../src/access/sessions/authorize-session.ts'
import { openSession } from '../../src/access/sessions/open-session.ts'
import { setUp, type TenantSetUp } from '../../src/access/applications/set-up.ts'
import { updateApplication } from '../../src/access/applications/update-application.ts'
import { FileKeyProvider } from '../../src/adapters/local-keyring/file-key-provider.ts'
import { LocalKeyring } from '../../src/adapters/local-keyring/local-keyring.ts'
import { SystemRandom } from '../../src/adapters/system/system-random.ts'
import { checkpointStatement } from '../../src/ports/audit-log.ts'
import { auditCheckpointer } from '../../src/audit/checkpoint.ts'
import { upgradeAuditLogs, type AuditUpgrade } from '../../src/audit/upgrade.ts'
import { verifyAccessRows } from '../../src/audit/verify-access-rows.ts'
import { verifyAuditLog } from '../../src/audit/verification.ts'
import type { RequestContext } from '../../src/request/context.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { Store } from '../../src/ports/store.ts'
import {
  AttackedPostgres,
  AttackedSqlite,
  type AttackedDatabase,
} from '../kit/attacked-database.ts'
import { STATED } from '../kit/audit-attack.ts'
import { freshDatabase } from '../kit/postgres/test-database.ts'
import { temporaryFolder } from '../kit/running-vault.ts'
import { contextWith, stillWorld, type StillWorld } from '../kit/still-world.ts'

const DAY_MS = 24 * 60 * 60 * 1000

interface AccessAttack {
  readonly name: string
  /** What the service does after the attacker has copied the database. */
  readonly meanwhile?: (stage: AccessStage) => Promise<unknown>
  /** How long it runs after that; a second gives it time for a checkpoint. */
  readonly passes?: number
  readonly attack: (stage: AccessStage) => Promise<unknown>
  /** What verification says of the access rows. */
  readonly says: RegExp
}

const OUTSIDE =
  /^an application or key was added, changed, removed or put back outside the service$/
const EARLIER = /applications or keys were put back to an earlier state$/

const ATTACKS: readonly AccessAttack[] = [
  {
    name: 'an application has the permissions of yesterday again',
    meanwhile: (it) => it.narrow(),
    attack: (it) => it.putBack('applications'),
    says: OUTSIDE,
  },
  {
    name: 'so has it, with the access state of yesterday',
    meanwhile: (it) => it.narrow(),
    attack: async (it) => {
      await it.putBack('applications')
      await it.putBackState('access_revision', 'access')
    },
    says: EARLIER,
  },
  {
    name: 'so has it, with the access state and the checkpoint of yesterday',
    meanwhile: (it) => it.narrow(),
    attack: async (it) => {
      await it.putBack('applications')
      await it.putBackState('access_revision', 'access', 'sealed_number', 'seal')
    },
    says: EARLIER,
  },
  {
    name: 'so has it, and the access state is gone',
    meanwhile: (it) => it.narrow(),
    attack: async (it) => {
      await it.putBack('applications')
      await it.database.ask(`UPDATE ${it.heads} SET access_revision = 0, access = NULL`)
    },
    says: /^the access state is gone$/,
  },
  {
    name: 'so has it, and the digest is another one',
    meanwhile: (it) => it.narrow(),
    attack: async (it) => {
      await it.putBack('applications')
      // The first digit of the digest.
      await it.database.ask(
        `UPDATE ${it.heads} SET access = '{"digest":"' ||
           CASE WHEN substr(access, 12, 1) = '0' THEN '1' ELSE '0' END || substr(access, 13)`,
      )
    },
    says: /^the access state is not genuine$/,
  },
  {
    name: 'an application has wider permissions',
    attack: (it) =>
      it.database.ask(`UPDATE applications SET permissions = '["token:read"]' WHERE name = 'app'`),
    says: OUTSIDE,
  },
  {
    name: 'an application has another rule',
    attack: (it) =>
      it.database.ask(
        `UPDATE applications SET rules = '[{"description":"","priority":1,"container":"/","transform":"reveal","permissions":["token:read"]}]' WHERE name = 'app'`,
      ),
    says: OUTSIDE,
  },
  {
    name: 'an application never expires',
    attack: (it) => it.database.ask('UPDATE applications SET expires_at = NULL'),
    says: OUTSIDE,
  },
  {
    name: 'a key that was regenerated works again',
    meanwhile: (it) => it.regenerate(),
    attack: (it) =>
      it.database.ask(
        `INSERT INTO application_keys SELECT * FROM before_application_keys AS old
         WHERE NOT EXISTS (SELECT 1 FROM application_keys AS it WHERE it.id = old.id)`,
      ),
    says: /^application key [0-9a-f-]{36} was added outside the service$/,
  },
  {
    name: 'a key has the hash of the attacker',
    attack: async (it) => {
      const [{ id }] = (await it.database.ask(
        `SELECT id FROM application_keys ORDER BY id LIMIT 1`,
      )) as [{ id: string }]
      const hash = Buffer.alloc(32, 7)
      await it.database.ask('UPDATE application_keys SET hash = ? WHERE id = ?', [hash, id])
    },
    says: OUTSIDE,
  },
  {
    name: 'an application is deleted, with its keys',
    attack: async (it) => {
      await it.database.ask('DELETE FROM application_keys')
      await it.database.ask("DELETE FROM applications WHERE name = 'app'")
    },
    says: OUTSIDE,
  },
  {
    name: 'a session has more rights',
    attack: (it) => it.database.ask(`UPDATE sessions SET permissions = '["token:read"]'`),
    says: /^session [0-9a-f-]{36} was added or changed outside the service$/,
  },
  {
    name: 'a session lives on',
    attack: (it) => it.database.ask('UPDATE sessions SET expires_at = expires_at + 86400000'),
    says: /^session [0-9a-f-]{36} was added or changed outside the service$/,
  },
  {
    name: 'a session has the hash of the attacker',
    attack: (it) =>
      it.database.ask('UPDATE sessions SET hash = ?, proof = NULL', [Buffer.alloc(32, 7)]),
    says: /^session [0-9a-f-]{36} was added or changed outside the service$/,
  },
]

for (const store of ['sqlite', 'postgres'] as const) {
  for (const { name, meanwhile, passes = 1000, attack, says } of ATTACKS) {
    test(`${store}: verification says that ${name}, before and after the service runs again`, async (t) => {
      const stage = await makeStage(t, store)
      await stage.copy()
      await stage.serve(async (world) => {
        await meanwhile?.(stage)
        world.clock.pass(passes)
        await auditCheckpointer(world)()
      })
      assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })
      await attack(stage)
      const { ofAccess } = await stage.verify()
      assert.match(ofAccess ?? 'nothing', says)
      for (let n = 0; n < 2; n++) {
        await stage.serve(async (world) => {
          await auditCheckpointer(world)()
          await stage.add()
          // The application may be gone.
          await stage.narrow().catch(() => {})
          await stage.regenerate().catch(() => {})
          world.clock.pass(DAY_MS)
          await auditCheckpointer(world)()
        })
        const after = await stage.verify()
        assert.notEqual(after.ofAccess, null, 'it is not named any more')
      }
    })
  }
}

test('a session is refused whose row is not as the service wrote it, with an event in the log', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  const authenticate = (): Promise<unknown> =>
    stage.serve(async (world) => await createIdentities(world).authenticate(stage.sessionKey))
  const permissions = async (): Promise<unknown> =>
    ((await authenticate()) as { permissions: unknown }).permissions
  assert.deepEqual(await permissions(), ['token:create'])
  const before = stage.logged.length
  await stage.database.ask(`UPDATE sessions SET permissions = '["token:read","token:create"]'`)
  await assert.rejects(authenticate, { code: 'key_unknown' })
  const [event, error] = stage.logged[before] as [string, Error]
  assert.equal(event, 'access_altered')
  assert.match(error.message, /added or changed outside the service/)
  await stage.database.ask(`UPDATE sessions SET permissions = '["token:create"]'`)
  assert.deepEqual(await permissions(), ['token:create'])
})

test('sqlite: a key or session under another form of the id of its tenant, which verification does not find, is unknown', async (t) => {
  const forms = { 'as text': (id: string) => id, 'with a byte more': longer }
  for (const [name, formOf] of Object.entries(forms)) {
    const stage = await makeStage(t, 'sqlite')
    const { key } = await stage.serve((world) => stage.issue(world))
    const authenticate = (apiKey: string): Promise<unknown> =>
      stage.serve(async (world) => await createIdentities(world).authenticate(apiKey))
    assert.ok(await authenticate(key), name)
    const form = formOf(stage.tenantId)
    await stage.database.ask(
      'INSERT INTO tenants SELECT ?, ?, plan, settings, created_by, created_at, NULL, NULL FROM tenants',
      [form, name],
    )
    for (const table of ['applications', 'application_keys', 'sessions']) {
      await stage.database.ask(`UPDATE ${table} SET tenant = ?`, [form])
    }
    await assert.rejects(authenticate(key), { code: 'key_unknown' }, name)
    await assert.rejects(authenticate(stage.sessionKey), { code: 'key_unknown' }, name)
  }
})

test('sqlite: a key can be revoked although an attacker made rows beside it unreadable, and verification names that', async (t) => {
  for (const edit of [
    'UPDATE application_keys SET created_by = 5',
    'UPDATE application_keys SET version = 1152921504606846976',
    'UPDATE record_heads SET access_revision = 1152921504606846976',
  ]) {
    const stage = await makeStage(t, 'sqlite')
    const { id, key } = await stage.serve((world) => stage.issue(world))
    const authenticate = (): Promise<unknown> =>
      stage.serve(async (world) => await createIdentities(world).authenticate(key))
    await stage.database.ask(edit)
    assert.ok(await authenticate(), edit)
    await stage.serve((world) => stage.revoke(world, id))
    await assert.rejects(authenticate, { code: 'key_unknown' }, edit)
    const said = await stage.verify().catch((error: unknown) => ({ ofAccess: String(error) }))
    assert.notEqual(said.ofAccess, null, edit)
  }
})

test('sqlite: rows of a tenant with an id that no query finds stop neither checkpoints nor verification', async (t) => {
  const forms = [() => 5, (id: string) => id, longer]
  for (const formOf of forms) {
    const stage = await makeStage(t, 'sqlite')
    const form = formOf(stage.tenantId)
    for (const table of ['tenants', 'record_heads']) {
      const column =
        table === 'tenants' ? "id = ?, name = 'other'" : 'tenant = ?, sealed_number = 0'
      await stage.database.ask(`CREATE TABLE copy AS SELECT * FROM ${table}`)
      await stage.database.ask(`UPDATE copy SET ${column}`, [form])
      await stage.database.ask(`INSERT INTO ${table} SELECT * FROM copy`)
      await stage.database.ask('DROP TABLE copy')
    }
    await stage.serve(async (world) => {
      await stage.add()
      assert.deepEqual(await world.store.tenants.ids(), [stage.tenantId])
      for (const which of ['all', 'beyond-checkpoint'] as const) {
        assert.deepEqual(await world.store.auditLog.tenantIds(which), [stage.tenantId])
      }
      await auditCheckpointer(world)()
      assert.deepEqual(await world.store.auditLog.tenantIds('beyond-checkpoint'), [])
    })
    assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })
  }
})

test('sqlite: a hash that is in the index of keys alone, which verification does not read, is unknown', async (t) => {
  const { database, serve, verify } = await makeStage(t, 'sqlite')
  const key = makeApiKey('private', new SystemRandom())
  const [{ sql }] = (await database.ask(
    "SELECT sql FROM sqlite_schema WHERE name = 'application_keys'",
  )) as [{ sql: string }]
  await database.ask(sql.replace('application_keys', 'other'))
  await database.ask('INSERT INTO other SELECT * FROM application_keys')
  await database.ask('UPDATE other SET hash = ? WHERE id = (SELECT max(id) FROM other)', [
    hashApiKey(key),
  ])
  await database.ask('PRAGMA writable_schema = ON')
  // Each of the two tables gets the index of the other.
  const both = "name LIKE 'sqlite_autoindex_%' AND tbl_name IN ('application_keys', 'other')"
  await database.ask(
    `UPDATE sqlite_schema SET rootpage = -rootpage +
       (SELECT sum(rootpage) FROM sqlite_schema WHERE ${both}) WHERE ${both}`,
  )
  assert.deepEqual(await verify(), { ofEvents: null, ofAccess: null })
  const authenticating = serve(async (world) => await createIdentities(world).authenticate(key))
  await assert.rejects(authenticating, { code: 'key_unknown' })
})

test('a session that was changed before it is authorized gets no rights', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  const nonce = await stage.serve((world) => stage.open(world))
  await stage.database.ask('UPDATE sessions SET hash = ? WHERE authorized_by IS NULL', [
    Buffer.alloc(32, 7),
  ])
  const authorizing = stage.serve((world) => stage.authorize(world, nonce.nonce))
  await assert.rejects(authorizing, { code: 'session_not_found' })
})

test('the first start on an older database seals its access rows and proves its sessions, once', async (t) => {
  for (const to of ['before access states', 'before checkpoints'] as const) {
    const stage = await makeStage(t, 'sqlite')
    await stage.downgrade(to)
    await stage.database.ask(`UPDATE applications SET permissions = '["token:read"]'`)
    assert.deepEqual(await stage.upgrade(), { tenants: 1, refused: [] })
    assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })
    assert.equal(await stage.upgrade(), null)
    await stage.serve(async (world) => {
      assert.ok(await createIdentities(world).authenticate(stage.sessionKey))
      await stage.add()
    })
    assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })

    await stage.database.ask('UPDATE record_heads SET access_revision = 0, access = NULL')
    await stage.database.ask('UPDATE sessions SET proof = NULL')
    assert.equal(await stage.upgrade(), null)
    assert.equal((await stage.verify()).ofAccess, 'the access state is gone')
  }
})

test('two servers that upgrade a database at the same time seal it once', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  await stage.downgrade('before access states')
  const upgrades = await stage.upgradeTwice()
  for (const it of upgrades) assert.deepEqual(it, { tenants: 1, refused: [] })
  assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })
  const [row] = await stage.database.ask('SELECT access_revision AS revision FROM record_heads')
  assert.equal(row!['revision'], 1)
})

test('an upgrade that was interrupted goes on, and seals nothing that a checkpoint sealed before', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  await stage.downgrade('before access states')
  await stage.copy()
  await stage.upgrade()
  await stage.putBack('installation')
  assert.deepEqual(await stage.upgrade(), { tenants: 1, refused: [] })
  assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })

  await stage.putBack('installation')
  await stage.database.ask('UPDATE record_heads SET access_revision = 0, access = NULL')
  assert.equal((await stage.upgrade())!.refused.length, 1)
  assert.equal((await stage.verify()).ofAccess, 'the access state is gone')
})

test('an upgrade is not repeated by the root key check and the checkpoint of before it, with all events since', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  await stage.downgrade('before access states')
  await stage.copy()
  await stage.upgrade()
  for (let n = 0; n < 3; n++) {
    await stage.serve(async (world) => {
      await stage.add()
      world.clock.pass(DAY_MS)
      await auditCheckpointer(world)()
    })
  }
  assert.deepEqual(await stage.verify(), { ofEvents: null, ofAccess: null })
  await stage.putBack('installation')
  await stage.putBackState('access_revision', 'access', 'sealed_number', 'seal')
  await stage.database.ask(`UPDATE applications SET permissions = '["token:read"]'`)
  assert.equal((await stage.upgrade())!.refused.length, 1)
  const { ofEvents, ofAccess } = await stage.verify()
  assert.match(ofEvents ?? 'nothing', /should have been in a checkpoint long ago/)
  assert.notEqual(ofAccess, null)
})

test('a checkpoint of before the upgrade that is put back is named', async (t) => {
  const stage = await makeStage(t, 'sqlite')
  await stage.downgrade('before access states')
  await stage.copy()
  await stage.upgrade()
  await stage.putBackState('sealed_number', 'seal')
  const said = { ofEvents: null, ofAccess: NOT_SEALED }
  assert.deepEqual(await stage.verify(), said)
  await stage.serve(async (world) => {
    await stage.add()
    await auditCheckpointer(world)()
  })
  assert.deepEqual(await stage.verify(), said)
})

function longer(id: string): Uint8Array {
  return Buffer.concat([Buffer.from(id.replaceAll('-', ''), 'hex'), Buffer.alloc(1)])
}

const NOT_SEALED = 'the access state is not in the checkpoint, which is from before the upgrade'

interface AccessStage {
  readonly database: AttackedDatabase
  /** The table with the end of each audit log. */
  readonly heads: string
  readonly logged: unknown[]
  readonly tenantId: string
  readonly sessionKey: string
  /** Copies every table as it is. */
  readonly copy: () => Promise<void>
  readonly putBack: (table: string) => Promise<void>
  readonly putBackState: (...columns: string[]) => Promise<void>
  readonly serve: <Result>(work: (world: StillWorld) => Promise<Result>) => Promise<Result>
  readonly verify: () => Promise<{ ofEvents: string | null; ofAccess: string | null }>
  /** Makes the database one of an older version. */
  readonly downgrade: (to: keyof typeof STATED) => Promise<void>
  readonly upgrade: () => Promise<AuditUpgrade | null>
  readonly upgradeTwice: () => Promise<(AuditUpgrade | null)[]>
  readonly add: () => Promise<unknown>
  readonly narrow: () => Promise<unknown>
  readonly regenerate: () => Promise<unknown>
  /** Returns a new key of the application. */
  readonly issue: (world: StillWorld) => Promise<{ id: string; key: string }>
  readonly revoke: (world: StillWorld, keyId: string) => Promise<unknown>
  readonly open: (world: StillWorld) => Promise<{ key: string; nonce: string }>
  readonly authorize: (world: StillWorld, nonce: string) => Promise<unknown>
}

const MANAGER = ['application:create', 'application:update', 'token:create'] as const

/** Makes a tenant with an application, which expires, and an authorized session of it. */
async function makeStage(t: TestContext, name: 'sqlite' | 'postgres'): Promise<AccessStage> {
  const folder = temporaryFolder(t)
  const database =
    name === 'sqlite' ? new AttackedSqlite(folder) : new AttackedPostgres(await freshDatabase())
  t.after(() => database.close())
  const provider = await FileKeyProvider.open(join(folder, 'root.key'), { createIfMissing: true })
  const { clock, logged, log } = stillWorld()
  const random = new SystemRandom()
  const worldOf = (store: Store): StillWorld => {
    const keyring = new LocalKeyring(provider, random, (id) => store.tenants.keys(id))
    return { ...stillWorld(store), clock, log, logged, random, keyring }
  }
  let current: StillWorld | null = null
  const serve: AccessStage['serve'] = async (work) => {
    const store = await database.serve()
    try {
      return await work((current = worldOf(store)))
    } finally {
      current = null
      await store.close()
    }
  }
  let made: TenantSetUp | null = null
  let application = ''
  let keyId = ''
  const context = (): RequestContext =>
    contextWith({
      tenantId: made!.tenantId,
      applicationId: made!.applicationId,
      keyId,
      type: 'management',
      permissions: [...MANAGER],
    })
  const add = async (): Promise<string> => {
    const body: JsonObject = {
      name: 'app',
      type: 'private',
      permissions: ['token:create', 'token:update'],
      expires_at: new Date(clock.now() + 30 * DAY_MS).toISOString(),
    }
    const { body: answer } = await createApplication(current!, context(), body)
    return (answer as { id: string }).id
  }
  const authorize = async (world: StillWorld, nonce: string): Promise<unknown> =>
    await authorizeSession(
      world,
      { ...context(), type: 'private' },
      {
        nonce,
        permissions: ['token:create'],
      },
    )
  const open = async (world: StillWorld): Promise<{ key: string; nonce: string }> => {
    const { body } = await openSession(world, context())
    const { session_key: key, nonce } = body as { session_key: string; nonce: string }
    return { key, nonce }
  }
  let sessionKey = ''
  await serve(async (world) => {
    made = await setUp(world, provider, { name: 'tenant', plan: 'enterprise' })
    const [key] = await world.store.applications.keys(made.tenantId, made.applicationId)
    keyId = key!.id
    application = await add()
    const session = await open(world)
    await authorize(world, session.nonce)
    sessionKey = session.key
    world.clock.pass(1000)
    await auditCheckpointer(world)()
  })
  const heads = name === 'sqlite' ? 'record_heads' : 'tenant_heads'
  return {
    database,
    heads,
    logged,
    tenantId: made!.tenantId,
    sessionKey,
    serve,
    add,
    issue: async (world) => {
      const { body } = await createApplicationKey(world, context(), application)
      return body as { id: string; key: string }
    },
    revoke: async (world, keyId) =>
      await deleteApplicationKey(world, context(), { id: application, keyId }),
    open,
    authorize,
    downgrade: async (to) => {
      await serve(async ({ store, keyring }) => {
        const { tenantId } = made!
        const keys = await keyring.open(tenantId)
        const covered = { ...(await store.auditLog.state(tenantId))!.checkpoint!, access: null }
        const proof = keys.attest(checkpointStatement(tenantId, covered))
        const checkpoint = { ...covered, proof }
        await store.commit(tenantId, [{ kind: 'put-audit-checkpoint', checkpoint }])
      })
      const known = Buffer.from('symbolon: this root key is right')
      const check = await provider.wrap(known, STATED[to])
      await database.ask('UPDATE installation SET root_key_check = ?', [check])
      await database.ask(`UPDATE ${heads} SET access_revision = 0, access = NULL`)
      await database.ask('UPDATE sessions SET proof = NULL')
    },
    upgrade: () => serve((world) => upgradeAuditLogs(world, provider)),
    upgradeTwice: () =>
      serve((world) => Promise.all([1, 2].map(() => upgradeAuditLogs(world, provider)))),
    copy: async () => {
      for (const it of [...Object.keys(database.tables), 'installation']) {
        await database.ask(`CREATE TABLE before_${it} AS SELECT * FROM ${it}`)
      }
    },
    putBack: async (table) => {
      await database.ask(`DELETE FROM ${table}`)
      await database.ask(`INSERT INTO ${table} SELECT * FROM before_${table}`)
    },
    putBackState: async (...columns) => {
      const old = columns.map((it) => `${it} = (SELECT ${it} FROM before_${heads})`)
      await database.ask(`UPDATE ${heads} SET ${old.join(', ')}`)
    },
    narrow: async () =>
      await updateApplication(current!, context(), {
        id: application,
        body: { name: 'app', permissions: ['token:create'] },
      }),
    regenerate: async () => await regenerateKey(current!, context(), application),
    verify: async () => {
      const { close, ...store } = await database.inspect()
      try {
        const world = { clock, keyring: worldOf(store as unknown as Store).keyring, store }
        const { flaw } = await verifyAuditLog(world, made!.tenantId)
        const access = await verifyAccessRows(world, made!.tenantId)
        return {
          ofEvents: flaw === null ? null : `event ${flaw.number} ${flaw.what}`,
          ofAccess: access.flaw,
        }
      } finally {
        await close()
      }
    },
  }
}

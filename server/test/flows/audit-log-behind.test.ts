/** A failover that loses the last transactions, under a running service. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readDocument } from '../tidy/docs.ts'
import { query } from '../kit/postgres/query.ts'
import { startReplicatedCluster, type ReplicatedCluster } from '../kit/postgres/standby.ts'
import {
  runSymbolon,
  startVault,
  temporaryFolder,
  type RunningVault,
} from '../kit/running-vault.ts'

interface LostTipLine {
  readonly tenant: string
  readonly tip: string
  readonly last: number
}

test('a failover that lost events is reported once per tenant, idle or busy, and the service goes on', async (t) => {
  const { primary, standby, variables, caughtUp, cutOff } = await replicated(t)
  const tenants = [await tenantNamed('idle', variables), await tenantNamed('busy', variables)]
  const [idle, busy] = [tenants[0]!, tenants[1]!]
  const vault = await startVault(variables['SYMBOLON_DATA_DIR']!, variables)
  t.after(() => vault.stop('SIGKILL'))
  for (const it of tenants) await read(vault, it, 2)
  await caughtUp()

  await cutOff()
  for (const it of tenants) await read(vault, it, 3)
  const [ofIdle, ofBusy] = [await tipOf(primary.url, idle), await tipOf(primary.url, busy)]
  await primary.halt()
  await query(standby.url, 'SELECT pg_promote()')
  assert.ok((await tipOf(standby.url, idle)).number < ofIdle.number)

  await read(vault, busy, 9)
  assert.ok((await tipOf(standby.url, busy)).number > ofBusy.number)
  for (let tries = 0; linesIn(vault).length < 2 && tries < 2_000; tries++) await sleep(50)
  for (const it of tenants) await read(vault, it, 3)
  const lines = linesIn(vault)
  assert.deepEqual(
    lines.map(({ tenant, tip }) => `${tenant} ${tip}`).toSorted(),
    [
      `${idle.tenantId} ${ofIdle.number}:${ofIdle.hash}`,
      `${busy.tenantId} ${ofBusy.number}:${ofBusy.hash}`,
    ].toSorted(),
  )
  assert.match(
    vault.printed(),
    /The database is behind: event \d+ of the audit log, which was committed, is missing/,
  )

  assert.deepEqual(Object.keys(lines[0]!), Object.keys(exampleLine()))

  // An operator who failed over on purpose can go on.
  assert.equal((await fetch(`${vault.url}/health/ready`)).status, 200)
  const port = /"event":"metrics","port":(\d+)/.exec(vault.printed())![1]!
  const metrics = await (await fetch(`http://localhost:${port}/metrics`)).text()
  assert.match(metrics, /^symbolon_audit_log_behind_total 2$/m)
  for (const { tenant, tip } of lines) {
    const flags = ['--tenant', tenant, '--tip', tip]
    const { status, out } = await runSymbolon(['audit', 'verify', ...flags], variables)
    assert.equal(status, 1, out)
    assert.match(out, /: BROKEN: event \d+ (of --tip is missing|is another one than that of --tip)/)
  }
  assert.equal((await runSymbolon(['audit', 'verify'], variables)).status, 0)
  await vault.stop()
  assert.equal(linesIn(vault).length, 2)
})

type Replicated = ReplicatedCluster & { readonly variables: Readonly<Record<string, string>> }

/** A primary, its standby, and the settings of a service that uses whichever is the primary. */
async function replicated(t: TestContext): Promise<Replicated> {
  const cluster = await startReplicatedCluster()
  t.after(() => cluster.stop())
  const hosts = [cluster.primary, cluster.standby].map((it) =>
    new URL(it.url).searchParams.get('host'),
  )
  return {
    ...cluster,
    variables: {
      SYMBOLON_DATA_DIR: temporaryFolder(t),
      SYMBOLON_DATABASE_URL: `postgres://postgres@localhost/postgres?host=${hosts.join(',')}`,
      SYMBOLON_METRICS_PORT: '0',
    },
  }
}

interface NamedTenant {
  readonly tenantId: string
  readonly key: string
}

async function tenantNamed(
  name: string,
  variables: Readonly<Record<string, string>>,
): Promise<NamedTenant> {
  const { out, err } = await runSymbolon(['init', '--json', '--name', name], variables)
  assert.equal(err, '')
  const { tenant_id: tenantId, api_key: key } = JSON.parse(out) as Record<string, string>
  return { tenantId: tenantId!, key: key! }
}

/** Sends requests that are in the audit log until `count` of them were answered; the database may be away meanwhile. */
async function read(vault: RunningVault, { key }: NamedTenant, count: number): Promise<void> {
  for (let answered = 0; answered < count;) {
    const { status } = await fetch(`${vault.url}/applications`, { headers: { 'bt-api-key': key } })
    assert.ok(status === 200 || status === 503, `it answered ${status}`)
    if (status === 200) answered++
    else await sleep(50)
  }
}

async function tipOf(
  url: string,
  { tenantId }: NamedTenant,
): Promise<{ readonly number: number; readonly hash: string }> {
  const { rows } = await query(
    url,
    `SELECT number::int, encode(hash, 'hex') AS hash FROM tenant_heads WHERE tenant = '${tenantId}'`,
  )
  return rows[0]
}

/** The line in docs/operate/audit-log.md. */
function exampleLine(): object {
  const document = readDocument('docs/operate/audit-log.md', 'how a lost tip is logged')
  return JSON.parse(/^\{.*"audit_log_behind".*\}$/m.exec(document)![0]) as object
}

function linesIn(vault: RunningVault): LostTipLine[] {
  return vault
    .printed()
    .split('\n')
    .filter((it) => it.includes('"event":"audit_log_behind"'))
    .map((it) => JSON.parse(it) as LostTipLine)
}

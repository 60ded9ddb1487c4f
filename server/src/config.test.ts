import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ConfigError, ignoredVariables, readConfig, SETTINGS, unknownVariables } from './config.ts'

/** The variables that Kubernetes sets for a Service named `symbolon` or `symbolon-metrics`. */
const SERVICE_LINKS = {
  SYMBOLON_SERVICE_HOST: '10.0.0.1',
  SYMBOLON_SERVICE_PORT: '4400',
  SYMBOLON_SERVICE_PORT_HTTP: '4400',
  SYMBOLON_PORT: 'tcp://10.0.0.1:4400',
  SYMBOLON_PORT_4400_TCP: 'tcp://10.0.0.1:4400',
  SYMBOLON_PORT_4400_TCP_PROTO: 'tcp',
  SYMBOLON_PORT_4400_TCP_PORT: '4400',
  SYMBOLON_PORT_4400_TCP_ADDR: '10.0.0.1',
  SYMBOLON_METRICS_SERVICE_HOST: 'fd00::1',
  SYMBOLON_METRICS_SERVICE_PORT: '9464',
  SYMBOLON_METRICS_PORT: 'tcp://[fd00::1]:9464',
  SYMBOLON_METRICS_PORT_9464_TCP: 'tcp://[fd00::1]:9464',
  SYMBOLON_METRICS_PORT_9464_TCP_ADDR: 'fd00::1',
  // Of a Service named `symbolon-x`: two edits from SYMBOLON_PORT.
  SYMBOLON_X_PORT: 'tcp://10.0.0.2:80',
}

describe('readConfig()', () => {
  test('refuses a variable within two edits of a setting, and names both', () => {
    const cases: [variable: string, meant: string][] = [
      ['SYMBOLON_PROT', 'SYMBOLON_PORT'],
      ['SYMBOLON_PORTS', 'SYMBOLON_PORT'],
      ['SYMBOLON_POST', 'SYMBOLON_HOST or SYMBOLON_PORT'],
      ['SYMBOLON_port', 'SYMBOLON_PORT'],
      ['SYMBOLON_DATADIR', 'SYMBOLON_DATA_DIR'],
      ['SYMBOLON_DATABASE_URI', 'SYMBOLON_DATABASE_URL'],
      ['SYMBOLON_ROOT_KEYFILES', 'SYMBOLON_ROOT_KEY_FILE'],
    ]
    for (const [variable, meant] of cases) {
      const message = `${variable} is not a setting: if you mean ${meant}, rename it; otherwise unset it.`
      const read = () => readConfig({}, { [variable]: 'x' })
      assert.throws(read, (it) => it instanceof ConfigError && it.message === message)
    }
  })

  test('accepts variables further away, and takes no setting for a misspelling of another', () => {
    readConfig({}, { SYMBOLON_DATABASE: 'x', SYMBOLON_TEST_SEED: '7', SYMBOLONPORT: 'x' })
    const known = Object.values(SETTINGS).map((it) => it.variable)
    assert.deepEqual(unknownVariables(Object.fromEntries(known.map((it) => [it, 'x']))), [])
  })

  test('never refuses names that begin like the variables of Kubernetes', () => {
    readConfig({}, { SYMBOLON_PORT_X: 'x', SYMBOLON_SERVICE_X: 'x' })
  })

  test('accepts only guarded headers for responses of reactors, in any case', () => {
    const read = (names: string) =>
      readConfig({}, { SYMBOLON_REACTOR_RESPONSE_HEADERS: names }).reactorResponseHeaders
    assert.deepEqual(read(''), [])
    assert.deepEqual(read('Location, www-authenticate'), ['location', 'www-authenticate'])
    for (const names of ['set-cookie', 'location;refresh', '*', 'location, bt-trace-id']) {
      const wrong = names.split(', ').at(-1)!
      const said = `SYMBOLON_REACTOR_RESPONSE_HEADERS is '${names}' (see '${wrong}'), but must be a comma-separated list`
      assert.throws(
        () => read(names),
        (error: Error) => error.message.startsWith(said),
      )
    }
  })

  test('reads the destinations that are exempt for one tenant, whose id may be in any case', () => {
    const [one, other] = [
      '019ca945-0a00-4a01-87a1-c9505f5b7d8d',
      '019ca945-0a00-4a01-87a1-c9505f5b7d8e',
    ]
    const read = (text: string) => {
      const { egressAllowByTenant } = readConfig({}, { SYMBOLON_EGRESS_ALLOW_BY_TENANT: text })
      return [...egressAllowByTenant].map(([id, it]) => [id, ...it.map(({ text }) => text)])
    }
    assert.deepEqual(read(''), [])
    const text = `${one}=10.1.0.0/16, ${other} = *.b.example:8443 ,${one.toUpperCase()}=[::1]:9001,`
    assert.deepEqual(read(text), [
      [one, '10.1.0.0/16', '[::1]:9001'],
      [other, '*.b.example:8443'],
    ])
    const flag = readConfig({ 'egress-allow-by-tenant': `${one}=a.example` }, {})
    assert.deepEqual([...flag.egressAllowByTenant.keys()], [one])
  })

  test('ignores a service link in a setting: the default or the flag applies', () => {
    const config = readConfig({}, SERVICE_LINKS)
    assert.deepEqual([config.port, config.metricsPort], [4400, null])
    assert.equal(readConfig({ port: '80' }, SERVICE_LINKS).port, 80)
    assert.throws(() => readConfig({}, { SYMBOLON_PORT: 'tcp://10.0.0.1' }), ConfigError)
    assert.throws(() => readConfig({}, { SYMBOLON_PORT: 'http://10.0.0.1:80' }), ConfigError)
    assert.throws(() => readConfig({ port: 'tcp://10.0.0.1:4400' }, {}), ConfigError)
  })
})

test('unknownVariables() leaves out service links', () => {
  const others = { SYMBOLON_DATABASE: 'x', SYMBOLON_PORT_X: 'x', HOME: '/' }
  const unknown = unknownVariables({ ...SERVICE_LINKS, ...others })
  assert.deepEqual(unknown, ['SYMBOLON_DATABASE', 'SYMBOLON_PORT_X'])
})

test('ignoredVariables() returns settings with a service link, unless a flag overrides them', () => {
  assert.deepEqual(ignoredVariables({}, SERVICE_LINKS), ['SYMBOLON_PORT', 'SYMBOLON_METRICS_PORT'])
  assert.deepEqual(ignoredVariables({ port: '80' }, SERVICE_LINKS), ['SYMBOLON_METRICS_PORT'])
  assert.deepEqual(ignoredVariables({}, { SYMBOLON_PORT: '80' }), [])
})

describe('readConfig() finds the password file', () => {
  const SYMBOLON_DATABASE_URL = 'postgres://symbolon@db/vault'
  const fileIn = (environment: Readonly<Record<string, string>>) => {
    const { databaseUrl } = readConfig({}, { SYMBOLON_DATABASE_URL, ...environment })
    return /[?&]passfile=([^&]+)/.exec(databaseUrl!)?.[1] ?? null
  }

  test('that PGPASSFILE names, even one that does not exist', () => {
    assert.equal(fileIn({ PGPASSFILE: '/a & b' }), encodeURIComponent('/a & b'))
    const several = 'postgres://symbolon@db1,db2/vault?application_name=x'
    assert.equal(fileIn({ SYMBOLON_DATABASE_URL: several, PGPASSFILE: '/p' }), '%2Fp')
  })

  test('of the home folder, if it exists and PGPASSFILE names no other', (t) => {
    const home = mkdtempSync(join(tmpdir(), 'symbolon-home-'))
    t.after(() => rmSync(home, { recursive: true }))
    assert.equal(fileIn({ HOME: home }), null)
    writeFileSync(join(home, '.pgpass'), '')
    assert.equal(fileIn({ HOME: home }), encodeURIComponent(join(home, '.pgpass')))
    assert.equal(fileIn({ HOME: home, PGPASSFILE: '/p' }), '%2Fp')
    assert.equal(fileIn({}), null)
  })

  test('that the address names, before any other', () => {
    const own = `${SYMBOLON_DATABASE_URL}?passfile=/own`
    assert.equal(fileIn({ SYMBOLON_DATABASE_URL: own, PGPASSFILE: '/p' }), '/own')
  })
})

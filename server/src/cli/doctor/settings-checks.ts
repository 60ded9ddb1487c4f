import { editDistance } from '../../base/edit-distance.ts'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { SETTINGS, type Config } from '../../config.ts'
import { failed, ok, warning, type Check } from './check.ts'
import { rootKeyFileOf } from '../open-root-keys.ts'

const VARIABLES = Object.values(SETTINGS).map((it) => it.variable)

/** The settings, and the Node version. An unusable value is reported before any check runs. */
export const SETTINGS_CHECKS: readonly Check[] = [
  {
    name: 'settings',
    group: 'settings',
    run: async ({ config }) => {
      const store = config.databaseUrl === null ? 'SQLite' : 'PostgreSQL'
      return ok(`All settings are usable: ${store}, data folder ${config.dataDir}.`)
    },
  },
  {
    name: 'unknown-settings',
    group: 'settings',
    run: async ({ unknownVariables }) => {
      if (unknownVariables.length === 0) return ok('No variable looks like a misspelled setting.')
      return warning(
        `These variables are not settings and have no effect: ${unknownVariables.join(', ')}.`,
        unknownVariables.map(correctionOf).join('; ') + '.',
      )
    },
  },
  {
    name: 'ignored-settings',
    group: 'settings',
    run: async ({ ignoredVariables }) => {
      if (ignoredVariables.length === 0) return ok('No setting holds the address of a Service.')
      const names = ignoredVariables.join(', ')
      return warning(
        `Kubernetes set ${names} to the address of a Service of that name, so the defaults apply.`,
        `If the defaults fit, nothing needs to be done. For another value, set ${names} in the pod's specification; ` +
          'to end this warning, set enableServiceLinks: false there, or name the Service differently.',
      )
    },
  },
  {
    name: 'setting-conflicts',
    group: 'settings',
    run: async ({ config }) => conflictOf(config) ?? ok('No setting contradicts another.'),
  },
  {
    name: 'node-version',
    group: 'settings',
    run: async ({ machine: { nodeVersion } }) => {
      const needed = neededNode()
      if (isAtLeast(nodeVersion, needed)) return ok(`Node ${nodeVersion}; ${needed} is needed.`)
      return failed(
        `Node ${nodeVersion} is too old: ${needed} is needed.`,
        `Install Node ${needed} or later, or run npm ci, which brings one along on Linux with glibc.`,
      )
    },
  },
]

function conflictOf(config: Config): ReturnType<typeof ok> | null {
  const { port, host, metricsPort, metricsHost, databaseUrl, dataDir, rootKeyNextFile } = config
  if (metricsPort !== null && metricsPort !== 0 && metricsPort === port && metricsHost === host) {
    return failed(
      `SYMBOLON_METRICS_PORT and SYMBOLON_PORT are both ${port}, and the service refuses to start.`,
      'Set SYMBOLON_METRICS_PORT to another port.',
    )
  }
  if (rootKeyNextFile !== null && resolve(rootKeyNextFile) === resolve(rootKeyFileOf(config))) {
    return warning(
      'SYMBOLON_ROOT_KEY_NEXT_FILE names the current root key, not another, so no rotation is possible.',
      'Unset SYMBOLON_ROOT_KEY_NEXT_FILE, or set it to the file of another root key.',
    )
  }
  const { publicUrl, trustedProxies, publicAddressRequestsPerMinute } = config
  // The service speaks plain HTTP, so something in front terminates TLS, and is the peer of every connection.
  const seesProxyOnly = publicUrl?.startsWith('https:') === true && trustedProxies.length === 0
  if (publicAddressRequestsPerMinute !== null && seesProxyOnly) {
    return warning(
      'SYMBOLON_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE is one limit for all clients: each seems to have the address of the reverse proxy.',
      'Set SYMBOLON_TRUSTED_PROXIES to the addresses of the reverse proxies.',
    )
  }
  const leftVault = existsSync(join(dataDir, 'symbolon.db'))
  if (databaseUrl !== null && leftVault && !existsSync(join(dataDir, 'symbolon.moved'))) {
    return warning(
      `SYMBOLON_DATABASE_URL is set, but ${dataDir} holds a vault that was not moved, whose data is not served.`,
      'Unset SYMBOLON_DATABASE_URL to serve it, move it with symbolon migrate --from sqlite --to postgres, ' +
        'or set SYMBOLON_DATA_DIR to another folder.',
    )
  }
  return null
}

/** Returns the remedy: names the setting that was probably meant, if one is close. */
function correctionOf(unknown: string): string {
  const distances = VARIABLES.map((it) => [it, editDistance(it, unknown)] as const)
  const [meant, distance] = distances.toSorted((a, b) => a[1] - b[1])[0]!
  return distance <= DISTANCE_MAX ? `Rename ${unknown} to ${meant}` : `Unset ${unknown}`
}

/** A misspelling has at most so many edits. Ours. */
const DISTANCE_MAX = 4

/** Returns the lowest version in package.json. */
function neededNode(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  const { engines } = JSON.parse(text) as { engines: { node: string } }
  return engines.node.replace(/^>=/, '')
}

function isAtLeast(version: string, needed: string): boolean {
  const [own, least] = [version, needed].map((it) => it.split('.').map(Number))
  for (const [at, part] of least!.entries()) {
    if ((own![at] ?? 0) !== part) return (own![at] ?? 0) > part
  }
  return true
}

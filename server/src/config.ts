/**
 * Configuration: reads the operator's environment and flags into Config. The only reader of `process.env`.
 *
 * One table defines each setting: its variable, its default, the values it accepts and its purpose. The flag of a variable has
 * its name without the prefix (`SYMBOLON_DATA_DIR`, `--data-dir`) and overrides it. docs/operate/configuration.md is generated
 * from the table.
 */
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { LOG_LEVELS, type LogLevel } from './ports/log.ts'
import { parseDestination, type Destination } from './base/destination.ts'
import { nearestOf } from './base/edit-distance.ts'
import { GUARDED_HEADERS } from './base/guarded-headers.ts'
import { parseIpBlock, type IpBlock } from './base/ip-address.ts'
import { isServiceLink } from './base/service-link.ts'
import { flawOfTenantDestination, parseTenantDestination } from './base/tenant-destination.ts'
import { listOf, oneOf, onOrOff, parseOrigin, wholeFrom } from './base/setting-values.ts'
import {
  CALLBACK_PAUSE_MS,
  JOB_STORAGE_BYTES_MAX,
  MiB,
  TOKENIZE_TOKENS_MAX,
  PUBLIC_TRANSACTIONS_OPEN_MAX,
  TRANSACTION_LIFETIME_MS,
  TRANSACTION_LIFETIME_MS_MAX,
  TRANSACTIONS_OPEN_MAX,
} from './base/limits.ts'
import { REACTOR_LEVELS, type ReactorLevel } from './ports/reactor-runner.ts'

export interface Config {
  readonly host: string
  readonly port: number
  readonly publicUrl: string | null
  readonly fieldsUrl: string | null
  readonly trustedProxies: readonly IpBlock[]
  readonly publicKeyRequestsPerMinute: number | null
  readonly publicAddressRequestsPerMinute: number | null
  readonly metricsHost: string
  readonly metricsPort: number | null
  readonly dataDir: string
  readonly databaseUrl: string | null
  readonly rootKeyFile: string | null
  readonly rootKeyNextFile: string | null
  readonly noCreate: boolean
  readonly corsOrigins: '*' | readonly string[]
  readonly logLevel: LogLevel
  readonly egressAllow: readonly Destination[]
  /** By tenant id. */
  readonly egressAllowByTenant: ReadonlyMap<string, readonly Destination[]>
  readonly extraCaFile: string | null
  readonly tokenizeTokensMax: number
  readonly tokenPrivacy: boolean
  readonly proxyTimeoutMs: number
  readonly transactionLifetimeS: number
  readonly transactionsOpenMax: number
  readonly publicTransactionsOpenMax: number
  readonly jobStorageMiB: number
  readonly callbackRetryBaseMs: number
  readonly reactorLevel: ReactorLevel
  readonly reactorPackages: readonly string[]
  readonly reactorLogs: boolean
  readonly reactorConfiguration: 'required' | 'optional'
  readonly reactorResponseHeaders: readonly string[]
  readonly auditRetentionDays: number
  readonly auditCheckpointFile: string | null
}

export interface Setting<Value> {
  readonly variable: string
  /** As the operator would write it; empty for unset. */
  readonly default: string
  /** Completes "must be ...". */
  readonly accepts: string
  readonly about: string
  /** Returns undefined for a value that is not accepted. */
  readonly parse: (text: string) => Value | undefined
  /** Whether it may hold a password, so that it is never shown. */
  readonly secret?: true
  /** Whether an empty value is refused instead of treated as unset, because the default is unlikely to be meant. */
  readonly neverEmpty?: true
  /** Whether the flag alone, without a value, means `on`. */
  readonly bare?: true
  /** Returns the items that made a list unacceptable. */
  readonly flaws?: (text: string) => readonly string[]
  /** Returns what is wrong with such an item, as a clause; empty if `accepts` says it. */
  readonly flawOf?: (item: string) => string
}

export const SETTINGS: { readonly [Name in keyof Config]: Setting<Config[Name]> } = {
  host: {
    variable: 'SYMBOLON_HOST',
    default: 'localhost',
    accepts: 'a host name or an address to listen on',
    about: 'Where to listen. `localhost` means both loopback addresses, IPv4 and IPv6.',
    parse: (text) => (/^[A-Za-z0-9.:_-]+$/.test(text) ? text : undefined),
  },
  port: {
    variable: 'SYMBOLON_PORT',
    default: '4400',
    accepts: 'a port from 0 to 65535',
    about: 'The port to listen on. 0 picks a free port; the ready line says which.',
    parse: wholeFrom(0, 65_535),
  },
  publicUrl: {
    variable: 'SYMBOLON_PUBLIC_URL',
    default: '',
    accepts: 'unset, or an http or https URL without a path such as https://vault.example',
    about:
      'The URL at which clients reach the service: for `Location` headers, and as the origin of its own pages, which may use any public key. If unset, `Location` has `http` and the `Host` of the request, or what a trusted proxy reports, and only pages at an address of this machine are its own.',
    parse: (text) => (text === '' ? null : parseOrigin(text)),
  },
  fieldsUrl: {
    variable: 'SYMBOLON_FIELDS_URL',
    default: '',
    accepts: 'unset, or an http or https URL without a path such as https://fields.example',
    about:
      'The URL from which pages load card fields, if it is another host name of the service than SYMBOLON_PUBLIC_URL. Fields at this origin may use any public key. See [browser.md](../browser.md).',
    parse: (text) => (text === '' ? null : parseOrigin(text)),
  },
  trustedProxies: {
    variable: 'SYMBOLON_TRUSTED_PROXIES',
    default: '',
    accepts: 'a comma-separated list of addresses and CIDRs such as 10.0.0.5 and 10.1.0.0/16',
    about:
      'The addresses of reverse proxies whose `Forwarded`, `X-Forwarded-Proto` and `X-Forwarded-Host` headers are used for `Location` headers, and whose `Forwarded` and `X-Forwarded-For` headers say from which address a request came. From other addresses these headers are ignored.',
    parse: (text) => {
      const blocks = listOf(text).map(parseIpBlock)
      return blocks.every((it) => it !== null) ? blocks : undefined
    },
    flaws: (text) => listOf(text).filter((it) => parseIpBlock(it) === null),
  },
  publicKeyRequestsPerMinute: {
    variable: 'SYMBOLON_PUBLIC_KEY_REQUESTS_PER_MINUTE',
    default: '',
    accepts: 'unset or a whole number from 1 to 100000',
    about:
      'How many requests a public key may make per minute, with the sessions that it opened; more are 429. Counted by each server alone. If unset, there is no limit. See [browser.md](../browser.md#limit-requests).',
    parse: (text) => (text === '' ? null : wholeFrom(1, 100_000)(text)),
  },
  publicAddressRequestsPerMinute: {
    variable: 'SYMBOLON_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE',
    default: '',
    accepts: 'unset or a whole number from 1 to 100000',
    about:
      'The same for the requests with a public key that come from one address: an IPv4 address, or the first 64 bits of an IPv6 address. Behind a reverse proxy set SYMBOLON_TRUSTED_PROXIES too, or all clients have the address of the proxy.',
    parse: (text) => (text === '' ? null : wholeFrom(1, 100_000)(text)),
  },
  metricsHost: {
    variable: 'SYMBOLON_METRICS_HOST',
    default: 'localhost',
    accepts: 'a host name or an address to listen on',
    about: 'The address that `GET /metrics` listens on, if SYMBOLON_METRICS_PORT is set.',
    parse: (text) => (/^[A-Za-z0-9.:_-]+$/.test(text) ? text : undefined),
  },
  metricsPort: {
    variable: 'SYMBOLON_METRICS_PORT',
    default: '',
    accepts: 'unset or a port from 0 to 65535',
    about:
      'The port of `GET /metrics` for Prometheus, which needs no key. If unset, nothing is measured. See [metrics.md](metrics.md).',
    parse: (text) => (text === '' ? null : wholeFrom(0, 65_535)(text)),
  },
  dataDir: {
    variable: 'SYMBOLON_DATA_DIR',
    default: './data',
    accepts: 'a path',
    about: 'The folder of the database and, by default, of the root key.',
    parse: (text) => (text === '' ? undefined : text),
  },
  databaseUrl: {
    variable: 'SYMBOLON_DATABASE_URL',
    default: '',
    accepts:
      'unset, or postgres://user:password@host:port/name, or with several hosts: host:port,host:port',
    about:
      'The PostgreSQL database that holds everything; any number of servers may share it. If unset, SQLite in the data folder. See [postgres.md](postgres.md).',
    parse: (text) => (text === '' ? null : /^postgres(ql)?:\/\//.test(text) ? text : undefined),
    secret: true,
  },
  rootKeyFile: {
    variable: 'SYMBOLON_ROOT_KEY_FILE',
    default: '',
    accepts: 'a path',
    about:
      'The file with the 32 bytes of the root key. If unset, `root.key` in the data folder, created on the first start. In production keep it elsewhere, away from the data and its backups.',
    parse: (text) => (text === '' ? null : text),
    neverEmpty: true,
  },
  rootKeyNextFile: {
    variable: 'SYMBOLON_ROOT_KEY_NEXT_FILE',
    default: '',
    accepts: 'a path',
    about:
      'The file of the next root key, while the root key is being replaced. The service uses whichever of the two wraps the data. See [keys.md](keys.md).',
    parse: (text) => (text === '' ? null : text),
  },
  noCreate: {
    variable: 'SYMBOLON_NO_CREATE',
    default: 'off',
    accepts: 'on or off',
    about:
      'Whether `serve` and `init` refuse to create a new vault: with `on`, or the flag alone, they exit with status 1 and create nothing if the data folder or the database holds none. Set it once the vault exists, so that a wrong mount is noticed.',
    parse: onOrOff,
    bare: true,
  },
  corsOrigins: {
    variable: 'SYMBOLON_CORS_ORIGINS',
    default: '*',
    accepts: '* or a comma-separated list of origins such as https://shop.example',
    about: 'The web origins that may call from a browser (CORS).',
    parse: (text) => {
      if (text === '*') return '*'
      const origins = listOf(text)
      return origins.every((it) => /^https?:\/\/[^/\s]+$/.test(it)) ? origins : undefined
    },
  },
  logLevel: {
    variable: 'SYMBOLON_LOG_LEVEL',
    default: 'info',
    accepts: `one of ${LOG_LEVELS.join(', ')}`,
    about:
      'The lowest level that is logged. `info` logs a line for every request; `warn` and `error` only what needs attention.',
    parse: oneOf(LOG_LEVELS),
  },
  egressAllow: {
    variable: 'SYMBOLON_EGRESS_ALLOW',
    default: '',
    accepts:
      'a comma-separated list of addresses, CIDRs and host names, each with an optional port, such as 127.0.0.1:9001, 10.0.0.0/8 and *.internal.example',
    about:
      'Destinations exempt from the ban on private addresses (SSRF), for every tenant, for example `127.0.0.1:9001,*.internal.example`. A name covers every address it resolves to. Only these may also use plain `http`, or be an IP address instead of a name. See [egress.md](egress.md).',
    parse: (text) => {
      const entries = listOf(text).map(parseDestination)
      return entries.every((it) => it !== null) ? entries : undefined
    },
    flaws: (text) => listOf(text).filter((it) => parseDestination(it) === null),
    flawOf: (item) =>
      parseTenantDestination(item) === null
        ? ''
        : 'which belongs in SYMBOLON_EGRESS_ALLOW_BY_TENANT',
  },
  egressAllowByTenant: {
    variable: 'SYMBOLON_EGRESS_ALLOW_BY_TENANT',
    default: '',
    accepts:
      'a comma-separated list of TENANT_ID=DESTINATION, with the tenant before each destination, such as 019ca945-0a00-4a01-87a1-c9505f5b7d8d=10.1.0.0/16',
    about:
      'Destinations exempt for one tenant only, in addition to those of `SYMBOLON_EGRESS_ALLOW`, in the same form, each after the id of its tenant and an equals sign. For every other tenant they stay refused. See [egress.md](egress.md).',
    parse: (text) => {
      const byTenant = new Map<string, Destination[]>()
      const items = listOf(text)
      // Separators alone are no list: the operator meant something.
      if (items.length === 0 && text !== '') return undefined
      for (const item of items) {
        const entry = parseTenantDestination(item)
        if (entry === null) return undefined
        const { tenantId, destination } = entry
        byTenant.set(tenantId, [...(byTenant.get(tenantId) ?? []), destination])
      }
      return byTenant
    },
    flaws: (text) => listOf(text).filter((it) => parseTenantDestination(it) === null),
    flawOf: flawOfTenantDestination,
  },
  extraCaFile: {
    variable: 'SYMBOLON_EXTRA_CA_FILE',
    default: '',
    accepts: 'a path',
    about:
      'A PEM file of certificate authorities to trust for outbound TLS, in addition to the system’s. Read at the start.',
    parse: (text) => (text === '' ? null : text),
  },
  tokenizeTokensMax: {
    variable: 'SYMBOLON_TOKENIZE_TOKENS_MAX',
    default: String(TOKENIZE_TOKENS_MAX),
    accepts: 'a whole number from 1 to 1000000',
    about:
      'How many tokens one tokenize request may create. A JSON body is limited to 500,000 members and items in any case.',
    parse: wholeFrom(1, 1_000_000),
  },
  tokenPrivacy: {
    variable: 'SYMBOLON_TOKEN_PRIVACY',
    default: 'off',
    accepts: 'on or off',
    about: 'Whether tokens show the deprecated member `privacy`, which some old clients expect.',
    parse: onOrOff,
  },
  proxyTimeoutMs: {
    variable: 'SYMBOLON_PROXY_TIMEOUT_MS',
    default: '25000',
    accepts: 'a whole number of milliseconds from 100 to 600000',
    about: 'How long the destination of a proxied request may take to answer.',
    parse: wholeFrom(100, 600_000),
  },
  transactionLifetimeS: {
    variable: 'SYMBOLON_TRANSACTION_LIFETIME_S',
    default: String(TRANSACTION_LIFETIME_MS / 1000),
    accepts: 'a whole number of seconds from 1 to 86400',
    about: 'How long a transaction stays open.',
    parse: wholeFrom(1, TRANSACTION_LIFETIME_MS_MAX / 1000),
  },
  transactionsOpenMax: {
    variable: 'SYMBOLON_TRANSACTIONS_OPEN_MAX',
    default: String(TRANSACTIONS_OPEN_MAX),
    accepts: 'a whole number from 1 to 100000',
    about: 'How many transactions an application may have open; another is 429.',
    parse: wholeFrom(1, 100_000),
  },
  publicTransactionsOpenMax: {
    variable: 'SYMBOLON_PUBLIC_TRANSACTIONS_OPEN_MAX',
    default: String(PUBLIC_TRANSACTIONS_OPEN_MAX),
    accepts: 'a whole number from 1 to 100000',
    about:
      'How many a public application may have open, except for sessions that a private application authorized; at most as many as the setting above allows.',
    parse: wholeFrom(1, 100_000),
  },
  jobStorageMiB: {
    variable: 'SYMBOLON_JOB_STORAGE_MIB',
    default: String(JOB_STORAGE_BYTES_MAX / MiB),
    accepts: 'a whole number of MiB from 16 to 1048576',
    about:
      "How much a tenant's asynchronous invocations may take up in the database, with their arguments and results; another is 429 meanwhile.",
    parse: wholeFrom(16, 2 ** 20),
  },
  callbackRetryBaseMs: {
    variable: 'SYMBOLON_CALLBACK_RETRY_BASE_MS',
    default: String(CALLBACK_PAUSE_MS),
    accepts: 'a whole number of milliseconds from 1 to 3600000',
    about:
      'The delay before the first retry of a callback. Each further retry doubles it, up to 45 minutes, or up to this value if it is higher.',
    parse: wholeFrom(1, 3_600_000),
  },
  reactorLevel: {
    variable: 'SYMBOLON_REACTOR_LEVEL',
    default: 'jail',
    accepts: `one of ${REACTOR_LEVELS.join(', ')}`,
    about:
      'The sandbox of reactors. `jail` uses Landlock, seccomp and kernel limits; `hardened` adds namespaces, with bubblewrap. If the sandbox is not available, no reactor runs, and the log says what is missing. `portable` has no kernel sandbox: use it only for code that you trust. See [reactors.md](reactors.md).',
    parse: oneOf(REACTOR_LEVELS),
  },
  reactorPackages: {
    variable: 'SYMBOLON_REACTOR_PACKAGES',
    default: '',
    accepts: 'a comma-separated list of names of packages such as stripe and @adyen/api-library',
    about:
      'Packages that reactors may require in addition to the bundled ones. Install them beside the service; native code in them is not loaded.',
    parse: (text) => {
      const names = listOf(text)
      return names.every((it) => PACKAGE_NAME.test(it)) ? names : undefined
    },
    flaws: (text) => listOf(text).filter((it) => !PACKAGE_NAME.test(it)),
  },
  reactorLogs: {
    variable: 'SYMBOLON_REACTOR_LOGS',
    default: 'off',
    accepts: 'on or off',
    about:
      'Whether console output of reactors goes to the log, as `reactor_output`. Values that a reactor was given are redacted, but not if it encodes or changes them, so turn this on only if you trust the authors of reactors.',
    parse: onOrOff,
  },
  reactorConfiguration: {
    variable: 'SYMBOLON_REACTOR_CONFIGURATION',
    default: 'required',
    accepts: 'required or optional',
    about:
      'Whether a reactor needs a `configuration`. With `optional`, a reactor without one gets an empty one; with `required` it is refused.',
    parse: oneOf(['required', 'optional'] as const),
  },
  reactorResponseHeaders: {
    variable: 'SYMBOLON_REACTOR_RESPONSE_HEADERS',
    default: '',
    accepts: `a comma-separated list of ${GUARDED_HEADERS.join(', ')}`,
    about:
      'Headers that custom responses of reactors may set although they act for the whole host of the service or redirect to another one; otherwise they are removed. `location` within this service needs no listing. List one only if you trust the authors of reactors with this host.',
    parse: (text) => {
      const names = listOf(text.toLowerCase())
      return names.every(isGuarded) ? names : undefined
    },
    flaws: (text) => listOf(text).filter((it) => !isGuarded(it.toLowerCase())),
  },
  auditRetentionDays: {
    variable: 'SYMBOLON_AUDIT_RETENTION_DAYS',
    default: '400',
    accepts: 'a whole number of days from 1 to 36500',
    about: 'How long the audit log is kept. It cannot be switched off.',
    parse: wholeFrom(1, 36_500),
  },
  auditCheckpointFile: {
    variable: 'SYMBOLON_AUDIT_CHECKPOINT_FILE',
    default: '',
    accepts: 'unset or an absolute path',
    about:
      'A file to which every audit checkpoint is appended, for `symbolon audit verify --against`. Keep it on another volume than the database, so that a rollback of the database cannot take it along. If unset, checkpoints are only in the log, at the level `info`. See [audit-log.md](audit-log.md).',
    parse: (text) => (text === '' ? null : isAbsolute(text) ? text : undefined),
  },
}

/** A setting with an unusable value. Its message is one sentence for the operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** A setting whose value is accepted but cannot be used. Names the variable, or for() the flag that was given. */
export class SettingError extends ConfigError {
  readonly #flag: string
  readonly #what: string

  /** `what` completes the sentence that begins with the setting. */
  constructor(variable: string, what: string) {
    super(`${variable} ${what}`)
    this.#flag = flagOf(variable)
    this.#what = what
  }

  for(flags: Flags): string {
    return flags[this.#flag] === undefined ? this.message : `--${this.#flag} ${this.#what}`
  }
}

export type Environment = Readonly<Record<string, string | undefined>>
/** Flags without their dashes, such as `data-dir`. */
export type Flags = Readonly<Record<string, string | undefined>>

/** Throws ConfigError naming the variable, the given value and the accepted ones, or a misspelled variable. */
export function readConfig(flags: Flags = {}, environment: Environment = process.env): Config {
  refuseMisspelled(environment)
  const config: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const flag = flagOf(setting.variable)
    const fromFlag = flags[flag]
    const variable = environment[setting.variable]
    const given = fromFlag ?? (isServiceLink(setting.variable, variable) ? undefined : variable)
    const text = given ?? setting.default
    const refused = setting.neverEmpty === true && given?.trim() === ''
    const value = refused ? undefined : setting.parse(text.trim())
    if (value === undefined) {
      const source = fromFlag === undefined ? setting.variable : `--${flag}`
      const flaws = setting.flaws?.(text.trim()).map((it) => describeFlaw(setting, it)) ?? []
      const which = flaws.length === 0 ? '' : ` (see ${flaws.join(', ')})`
      const shown = setting.secret === true ? 'not shown here' : `'${text}'`
      throw new ConfigError(`${source} is ${shown}${which}, but must be ${setting.accepts}.`)
    }
    config[name] = value
  }
  config['databaseUrl'] = withPasswordFile(config['databaseUrl'] as string | null, environment)
  return config as unknown as Config
}

/**
 * Returns the address with the password file that libpq would use, if the address names none: PGPASSFILE, or `.pgpass` in the home
 * folder if it exists. The password of the address is used before it.
 */
function withPasswordFile(url: string | null, environment: Environment): string | null {
  if (url === null || /[?&]passfile=/.test(url)) return url
  const usual = join(environment['HOME'] ?? '', '.pgpass')
  const named = environment['PGPASSFILE'] ?? ''
  const file = named !== '' ? named : isAbsolute(usual) && existsSync(usual) ? usual : null
  if (file === null) return url
  return `${url}${url.includes('?') ? '&' : '?'}passfile=${encodeURIComponent(file)}`
}

function describeFlaw({ flawOf }: Pick<Setting<unknown>, 'flawOf'>, item: string): string {
  const flaw = flawOf?.(item) ?? ''
  return flaw === '' ? `'${item}'` : `'${item}', ${flaw}`
}

/** Returns the variables with our prefix that are neither settings nor service links: most likely misspelled. */
export function unknownVariables(environment: Environment = process.env): string[] {
  const names = Object.keys(environment).filter((it) => it.startsWith(PREFIX))
  return names.filter((it) => !VARIABLES.includes(it) && !isServiceLink(it, environment[it]))
}

/** Returns the settings' variables that are ignored because they hold service links. A flag overrides the variable anyway. */
export function ignoredVariables(
  flags: Flags = {},
  environment: Environment = process.env,
): string[] {
  return VARIABLES.filter(
    (it) => flags[flagOf(it)] === undefined && isServiceLink(it, environment[it]),
  )
}

/** A misspelled setting would silently keep its default: another data folder, say, and so a new vault. */
function refuseMisspelled(environment: Environment): void {
  for (const it of unknownVariables(environment)) {
    const injected = /^SYMBOLON_(?:SERVICE|PORT)_/.test(it)
    const meant = injected ? [] : nearestOf(it.toUpperCase(), VARIABLES)
    if (meant.length === 0) continue
    throw new ConfigError(
      `${it} is not a setting: if you mean ${meant.join(' or ')}, rename it; otherwise unset it.`,
    )
  }
}

const PREFIX = 'SYMBOLON_'
const VARIABLES: readonly string[] = Object.values(SETTINGS).map((it) => it.variable)

/** Converts `SYMBOLON_DATA_DIR` to `data-dir`. */
export function flagOf(variable: string): string {
  return variable.slice(PREFIX.length).toLowerCase().replaceAll('_', '-')
}

function isGuarded(name: string): boolean {
  return (GUARDED_HEADERS as readonly string[]).includes(name)
}

/** npm's rule for package names. */
const PACKAGE_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/

import type { Config } from '../../config.ts'
import { inBlock, parseIpAddress } from '../../base/ip-address.ts'
import type { Destination } from '../../base/destination.ts'
import { ok, warning, type Check } from './check.ts'

/** A block with fewer leading bits covers more than one network of an organization. Ours. */
const BITS_MIN = { 4: 8, 6: 16 } as const

/** The metadata service of clouds, which returns the machine's credentials. */
const METADATA = parseIpAddress('169.254.169.254')!

/** The addresses that the service listens on, and those it may call. */
export const NETWORK_CHECKS: readonly Check[] = [
  {
    name: 'listen-address',
    group: 'network',
    run: async ({ config }) => {
      const open = [
        ['SYMBOLON_HOST', config.host] as const,
        ...(config.metricsPort === null
          ? []
          : [['SYMBOLON_METRICS_HOST', config.metricsHost] as const]),
      ].filter(([, host]) => !isLoopback(host))
      if (open.length === 0) return ok('The service listens on this machine only.')
      const [setting, host] = open[0]!
      if (setting === 'SYMBOLON_HOST' && isHttps(config.publicUrl) && open.length === 1) {
        return ok(`The service listens at ${host}, and clients reach it by HTTPS through a proxy.`)
      }
      if (setting === 'SYMBOLON_METRICS_HOST') {
        return warning(
          `The metrics, which need no key, are open to every program that reaches ${host}.`,
          'Set SYMBOLON_METRICS_HOST to localhost, or let only Prometheus reach it.',
        )
      }
      return warning(
        `The service listens at ${host} and speaks plain HTTP: keys and data can be read on the network.`,
        'Set SYMBOLON_HOST to localhost, behind a TLS proxy on this machine; with a proxy elsewhere, let nothing else reach ' +
          'the service, and set SYMBOLON_PUBLIC_URL to its https URL.',
      )
    },
  },
  {
    name: 'public-url',
    group: 'network',
    applies: ({ publicUrl }) => publicUrl !== null,
    run: async ({ config: { publicUrl } }) => {
      if (isHttps(publicUrl)) return ok(`Clients reach the service at ${publicUrl}.`)
      const host = new URL(publicUrl!).hostname.replaceAll(/[[\]]/g, '')
      if (isLoopback(host)) return ok(`Clients reach the service at ${publicUrl}, on this machine.`)
      return warning(
        `SYMBOLON_PUBLIC_URL is ${publicUrl}: clients send their keys and data unencrypted.`,
        'Put a proxy that terminates TLS in front, and set SYMBOLON_PUBLIC_URL to its https URL.',
      )
    },
  },
  {
    name: 'egress-allow-list',
    group: 'network',
    run: async ({ config: { egressAllow, egressAllowByTenant } }) => {
      const ofTenants = [...egressAllowByTenant.values()].flat()
      for (const [setting, allowed] of [
        ['SYMBOLON_EGRESS_ALLOW', egressAllow],
        ['SYMBOLON_EGRESS_ALLOW_BY_TENANT', ofTenants],
      ] as const) {
        const wide = allowed.filter(isWide).map((it) => it.text)
        if (wide.length > 0) {
          return warning(
            `${setting} has ${wide.join(', ')}, which lifts the ban on private addresses (SSRF) almost entirely.`,
            `Replace it in ${setting} with the single destinations that are needed, each with its port.`,
          )
        }
        const metadata = allowed.filter(coversMetadata).map((it) => it.text)
        if (metadata.length > 0) {
          return warning(
            `${setting} has ${metadata.join(', ')}, which contains the metadata service of clouds.`,
            `Replace it in ${setting} with blocks that do not contain 169.254.169.254.`,
          )
        }
      }
      if (egressAllow.length + ofTenants.length === 0) {
        return ok('No destination is exempt from the egress rules.')
      }
      return ok(
        `${egressAllow.length} destinations are exempt from the egress rules for every tenant, and ${ofTenants.length} for one.`,
      )
    },
  },
  {
    name: 'egress-tenants',
    group: 'network',
    applies: ({ egressAllowByTenant }) => egressAllowByTenant.size > 0,
    run: async ({ config: { egressAllowByTenant }, vault }) => {
      const { tenants } = await vault()
      const unknown: string[] = []
      for (const id of egressAllowByTenant.keys()) {
        if ((await tenants.find(id)) === null) unknown.push(id)
      }
      if (unknown.length === 0) {
        return ok(`All ${egressAllowByTenant.size} tenants with exempt destinations exist.`)
      }
      return warning(
        `SYMBOLON_EGRESS_ALLOW_BY_TENANT has entries for ${unknown.join(', ')}, which is no tenant of this vault.`,
        'Correct the id in SYMBOLON_EGRESS_ALLOW_BY_TENANT, which GET /tenants/self shows, or remove the entries.',
      )
    },
  },
]

function isWide({ host }: Destination): boolean {
  if (host.kind === 'block') return host.block.bits < BITS_MIN[host.block.version]
  // For example *.com.
  return host.kind === 'suffix' && host.suffix.lastIndexOf('.') === 0
}

function coversMetadata({ host }: Destination): boolean {
  return host.kind === 'block' && inBlock(METADATA, host.block)
}

function isHttps(url: Config['publicUrl']): boolean {
  return url?.startsWith('https:') === true
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

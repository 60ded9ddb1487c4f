import { ConfigError, type Config } from '../config.ts'
import type { ListenAddress } from '../http/listen.ts'

/** Returns the address that the service listens on. */
export function listenAddressOf({ host, port }: Pick<Config, 'host' | 'port'>): ListenAddress {
  return { host, port, settings: 'SYMBOLON_HOST and SYMBOLON_PORT' }
}

/** Returns the address of the metrics, if they are enabled. Throws ConfigError if it equals the service's own. */
export function metricsAddressesOf({
  host,
  port,
  metricsHost,
  metricsPort,
}: Pick<Config, 'host' | 'port' | 'metricsHost' | 'metricsPort'>): ListenAddress[] {
  // The system error would only say that the port is taken, not by what.
  if (metricsPort !== 0 && metricsPort === port && metricsHost === host) {
    throw new ConfigError(
      `SYMBOLON_METRICS_PORT is ${port}, which is where the service itself listens: give it another port.`,
    )
  }
  const settings = 'SYMBOLON_METRICS_HOST and SYMBOLON_METRICS_PORT'
  return metricsPort === null ? [] : [{ host: metricsHost, port: metricsPort, settings }]
}

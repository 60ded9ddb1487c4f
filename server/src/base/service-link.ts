/**
 * Whether Kubernetes sets this variable in pods of the namespace of a Service, such as `symbolon` or `symbolon-metrics`.
 *
 * Source: kubernetes.io/docs/concepts/services-networking/service, Environment variables.
 */
export function isServiceLink(name: string, value: string | undefined): boolean {
  return SERVICE_LINK.test(name) || (name.endsWith('_PORT') && ADDRESS.test(value?.trim() ?? ''))
}

const SERVICE_LINK =
  /^SYMBOLON_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/

const ADDRESS = /^(?:tcp|udp|sctp):\/\/\S+:\d+$/i

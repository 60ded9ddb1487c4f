/**
 * Every way we know to write an address into a URL so that it does not look like itself.
 */

/** Addresses that nothing may ever be sent to, one of each kind that matters. */
export const FORBIDDEN_IPV4: readonly string[] = [
  '0.0.0.0',
  '10.0.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.1.2.3',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '203.0.113.7',
]

export const FORBIDDEN_IPV6: readonly string[] = [
  '::',
  '::1',
  'fc00::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fec0::1',
  '100::1',
  '2001:db8::1',
  '3fff::1',
  '5f00::1',
  '4000::1',
]

/** Returns URLs that some software reads as `address`, including ones no URL parser accepts. */
export function formsOf(address: string): string[] {
  return address.includes(':') ? ipv6Forms(address) : ipv4Forms(address)
}

function ipv4Forms(address: string): string[] {
  const parts = address.split('.').map(Number)
  const [a, b, c, d] = parts as [number, number, number, number]
  const whole = ((a * 256 + b) * 256 + c) * 256 + d
  const octal = (it: number): string => `0${it.toString(8)}`
  const hex = (it: number): string => `0x${it.toString(16)}`
  const groups = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  const inverted = `${(0xffff - (a * 256 + b)).toString(16)}:${(0xffff - (c * 256 + d)).toString(16)}`
  const hosts = [
    address,
    `${address}.`,
    String(whole),
    octal(whole),
    hex(whole),
    hex(whole).toUpperCase(),
    `0x0000${whole.toString(16)}`,
    parts.map(octal).join('.'),
    parts.map(hex).join('.'),
    parts.map((it) => `000${it.toString(8)}`).join('.'),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${hex(a)}.${hex((b * 256 + c) * 256 + d)}`,
    // Read otherwise by different parsers, and refused by this one or folded.
    parts.map((it) => String(it).padStart(3, '0')).join('.'),
    `${a + 256}.${b}.${c}.${d}`,
    String(whole + 2 ** 32),
    // Percent-encoded, full-width, circled, with other full stops, with what is not seen.
    [...address].map((it) => `%${it.charCodeAt(0).toString(16)}`).join(''),
    address.replaceAll('.', '%2e'),
    address.replaceAll('.', '。'),
    address.replaceAll('.', '．'),
    address.replaceAll(/\d/g, (it) => String.fromCodePoint(0xff10 + Number(it))),
    address.replaceAll(/[1-9]/g, (it) => String.fromCodePoint(0x2460 + Number(it) - 1)),
    address.replaceAll(/\d/g, (it) => String.fromCodePoint(0x1d7ce + Number(it))),
    `${address.slice(0, 2)}\u00ad${address.slice(2)}`,
    `${address.slice(0, 2)}\u200b${address.slice(2)}`,
    `${address.slice(0, 2)}\t${address.slice(2)}`,
    `${address.slice(0, 2)}\n${address.slice(2)}`,
    // Inside IPv6.
    `[::ffff:${address}]`,
    `[::ffff:${groups}]`,
    `[0:0:0:0:0:ffff:${groups}]`,
    `[0000:0000:0000:0000:0000:FFFF:${groups.toUpperCase()}]`,
    `[::${address}]`,
    `[::${groups}]`,
    `[::ffff:0:${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b::${groups}]`,
    `[64:ff9b:1::${address}]`,
    `[2002:${groups}::1]`,
    `[2001:0:808:808:0:0:${inverted}]`,
    `[2001:4860::5efe:${groups}]`,
    `[2001:4860::200:5efe:${groups}]`,
    `[::ffff:${address}%25lo]`,
  ]
  return [...hosts.flatMap(withSchemes), ...confusions(address)]
}

function ipv6Forms(address: string): string[] {
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [head, tail] = groups.map((it) => (it === '' ? [] : it.split(':'))) as [string[], string[]]
  const full = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  const hosts = [
    `[${address}]`,
    `[${address.toUpperCase()}]`,
    `[${full.join(':')}]`,
    `[${full.map((it) => it.padStart(4, '0')).join(':')}]`,
    `[${address}%25lo]`,
    `[${address}%lo]`,
    `%5B${address}%5D`,
    address,
  ]
  return [...hosts.flatMap(withSchemes), ...confusions(`[${address}]`)]
}

function withSchemes(host: string): string[] {
  return [`https://${host}/`, `http://${host}/`, `https://${host}:8080/`]
}

/** Where one reader sees a public host and another sees `host`. */
function confusions(host: string): string[] {
  return [
    `https://8.8.8.8@${host}/`,
    `https://public.test:443@${host}/`,
    `https://public.test%40${host}/`,
    `https:\\\\${host}\\`,
    `https:/${host}/`,
    `https:${host}/`,
    `https:////${host}/`,
    `\u0001https://${host}/`,
    `HTTPS://${host}/`,
    `https://${host}\\@public.test/`,
    `https://${host}#@public.test/`,
    `https://${host}?@public.test/`,
    `ftp://${host}/`,
    `ws://${host}/`,
    `gopher://${host}/`,
    `file://${host}/`,
  ]
}

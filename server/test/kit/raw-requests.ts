/** Requests that violate HTTP/1.1 or exceed this service's limits, as bytes. */
import { HEADER_BYTES_MAX, HEADERS_MAX } from '../../src/base/limits.ts'

export interface RequestForms {
  readonly key: () => string
  /** The path requested. */
  readonly path: string
  /** Builds a complete request with a key and more headers; `line` replaces its first line. */
  readonly get: (headers: readonly string[], line?: string) => string
  /** Builds one with a JSON body. */
  readonly post: (headers: readonly string[], body: string) => string
}

const CHUNKED = 'Transfer-Encoding: chunked'
const ONE_CHUNK = '3\r\n"x"\r\n0\r\n\r\n'

/** The flaw of each request, the status of its refusal, and its bytes. */
export function illFormed({
  key,
  path,
  get,
  post,
}: RequestForms): [name: string, status: number, bytes: () => string][] {
  const length = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}`
  return [
    ['Host twice', 400, () => get(['Host: localhost'])],
    ['Host twice, unlike each other', 400, () => get(['host: elsewhere'])],
    ['BT-API-KEY twice', 400, () => get([`bt-api-key: ${key()}`])],
    ['BT-API-KEY twice, the other one empty', 400, () => get(['BT-API-KEY:'])],
    ['Content-Type twice', 400, () => post(['Content-Type: text/plain', length('"x"')], '"x"')],
    [
      'BT-IDEMPOTENCY-KEY twice',
      400,
      () => post(['BT-IDEMPOTENCY-KEY: a', 'BT-IDEMPOTENCY-KEY: b', length('"x"')], '"x"'),
    ],
    ['101 headers', 431, () => get(many(HEADERS_MAX + 1 - 2))],
    ['1000 headers', 431, () => get(many(1000))],
    ['17 KiB of one header', 431, () => get([`X: ${'a'.repeat(HEADER_BYTES_MAX + 1024)}`])],
    ['17 KiB of headers', 431, () => get(many(90).map((it) => it + 'a'.repeat(195)))],
    [
      '17 KiB of path',
      431,
      () => get([], `GET ${path}/${'a'.repeat(HEADER_BYTES_MAX + 1024)} HTTP/1.1`),
    ],
    ['HTTP/0.9', 400, () => `GET ${path}\r\n\r\n`],
    ['HTTP/0.9, written out', 400, () => get([], `GET ${path} HTTP/0.9`)],
    ['HTTP/2.0, written out', 400, () => get([], `GET ${path} HTTP/2.0`)],
    ['a body for HTTP/0.9', 400, () => inVersion('0.9', post([length('"x"')], '"x"'))],
    ['chunks for HTTP/1.0', 400, () => inVersion('1.0', post([CHUNKED], ONE_CHUNK))],
    ...['identity, chunked', 'gzip, chunked', 'foo, chunked', 'chunked, chunked', 'gzip'].map(
      (coding): [string, number, () => string] => [
        `Transfer-Encoding: ${coding}`,
        400,
        () => post([`Transfer-Encoding: ${coding}`], ONE_CHUNK),
      ],
    ),
    [
      'two codings in two headers',
      400,
      () => post(['Transfer-Encoding: gzip', CHUNKED], ONE_CHUNK),
    ],
    ['HTTP/2 in the clear', 400, () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['lines that end without a carriage return', 400, () => get([]).replaceAll('\r\n', '\n')],
    ['a header folded over two lines', 400, () => get(['X: a\r\n b'])],
    ['a space before the colon', 400, () => get(['X : a'])],
    ['a NUL in a header', 400, () => get(['X: a\0b'])],
    ['no Host', 400, () => `GET ${path} HTTP/1.1\r\n\r\n`],
    ['an unknown method', 400, () => get([], `STEAL ${path} HTTP/1.1`)],
    ['bytes that are no HTTP', 400, () => '\x16\x03\x01\x02\x00\x01\x00'],
    [
      'both Transfer-Encoding and Content-Length',
      400,
      () => post(['Transfer-Encoding: chunked', 'Content-Length: 3'], '3\r\n"x"\r\n0\r\n\r\n'),
    ],
    ['Content-Length twice', 400, () => post(['Content-Length: 3', 'Content-Length: 4'], '"x" ')],
    ['Content-Length of a list', 400, () => post(['Content-Length: 3, 3'], '"x"')],
    ['Content-Length with a sign', 400, () => post(['Content-Length: +3'], '"x"')],
    ['Content-Length with other digits', 400, () => post(['Content-Length: 0x3'], '"x"')],
    [
      'an unknown transfer encoding',
      400,
      () => post(['Transfer-Encoding: chunked, identity'], '"x"'),
    ],
    [
      'a chunk whose length is no number',
      400,
      () => post(['Transfer-Encoding: chunked'], 'xyz\r\n"x"\r\n0\r\n\r\n'),
    ],
    [
      'a chunk longer than it says',
      400,
      () => post(['Transfer-Encoding: chunked'], '2\r\n"xyz"\r\n0\r\n\r\n'),
    ],
    [
      'a chunk length that overflows',
      400,
      () => post(['Transfer-Encoding: chunked'], 'fffffffffffffffff\r\n'),
    ],
  ]
}

/** Requests whose target names another host than `Host`, which must be `host`, as illFormed() returns them. */
export function contradicting(
  host: string,
  { key, path, get }: Omit<RequestForms, 'post'>,
): [name: string, status: number, bytes: () => string][] {
  const targets = [
    `http://elsewhere${path}`,
    `http://user@${host}${path}`,
    `http://${host}:4401${path}`,
    `https://${host}:80${path}`,
    `http://${host}.${path}`,
    `http://${host}\\@elsewhere${path}`,
    `http://elsewhere\\@${host}${path}`,
    `ftp://${host}${path}`,
    `http://:80${path}`,
    `*${path.slice(1)}`,
    '*',
  ]
  return [
    ...targets.map((target): [string, number, () => string] => [
      `the target ${target}`,
      400,
      () => get([], `GET ${target} HTTP/1.1`),
    ]),
    [
      'a target with a host, and no Host',
      400,
      () => `GET http://${host}${path} HTTP/1.0\r\nBT-API-KEY: ${key()}\r\n\r\n`,
    ],
  ]
}

/** Returns `count` meaningless headers. */
export function many(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `X-${at}: ${at}`)
}

function inVersion(version: string, bytes: string): string {
  return bytes.replace('HTTP/1.1', `HTTP/${version}`)
}

/**
 * Globals that Node loads when they, or their descriptors, are first read: 64 ms and 4 MB for those of `fetch`, 3 ms for
 * streams.
 */
import { redefine } from './pending-callbacks.ts'

const STREAMS: readonly string[] = [
  'ByteLengthQueuingStrategy',
  'CompressionStream',
  'CountQueuingStrategy',
  'DecompressionStream',
  'ReadableByteStreamController',
  'ReadableStream',
  'ReadableStreamBYOBReader',
  'ReadableStreamBYOBRequest',
  'ReadableStreamDefaultController',
  'ReadableStreamDefaultReader',
  'TextDecoderStream',
  'TextEncoderStream',
  'TransformStream',
  'TransformStreamDefaultController',
  'WritableStream',
  'WritableStreamDefaultController',
  'WritableStreamDefaultWriter',
]

const FETCH: readonly string[] = [
  'Headers',
  'Request',
  'Response',
  'FormData',
  'CloseEvent',
  'ErrorEvent',
  'EventSource',
  'MessageEvent',
  'WebSocket',
]

/** Groups of globals, each with those that its own lead to. */
const GROUPS: readonly (readonly [own: readonly string[], others: readonly string[]])[] = [
  [FETCH, STREAMS],
  [STREAMS, []],
  ...['Storage', 'localStorage', 'sessionStorage'].map((it) => [[it], []] as const),
]

export const LOADED_LATE: ReadonlySet<string> = new Set(GROUPS.flatMap(([own]) => own))

/** Returns the names of late globals that the code could reach through those it names. */
export function lateGlobalsOf(code: string): readonly string[] {
  return GROUPS.filter(([own]) => own.some((it) => code.includes(it))).flat(2)
}

/** Calls `load` with the globals of `fetch` before its first call, which loads them. */
export function beforeFirstFetch(load: (names: readonly string[]) => void): void {
  const { fetch } = globalThis
  let isFirst = true
  redefine(globalThis, {
    fetch(input: never, init?: never) {
      if (isFirst) load([...FETCH, ...STREAMS])
      isFirst = false
      return fetch(input, init)
    },
  })
}

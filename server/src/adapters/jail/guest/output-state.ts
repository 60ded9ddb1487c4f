/**
 * The state of consoles and streams: labels of `console.count()` and `console.time()`, groups, listeners, and writes that
 * a stream holds back. Every run begins with the state that the top level of the code left.
 */
import { Writable, type WritableOptions } from 'node:stream'
import { types } from 'node:util'

/** Members of every console that its groups change. */
export const GROUP_STATE: readonly PropertyKey[] = Reflect.ownKeys(console).filter((it) =>
  String(it).startsWith('Symbol(kGroupIndent'),
)

/** State that is accepted at one time, and restored later. */
export interface RestorableState {
  accept(): void
  restore(): void
}

/** Returns the state of a console: its maps of labels, and the members that its groups change. */
export function stateOfConsole(console: Console): RestorableState {
  const read = (key: PropertyKey): unknown => Reflect.get(console, key)
  const maps = Reflect.ownKeys(console)
    .map(read)
    // Node's own maps are no instances of `Map`.
    .filter((it) => types.isMap(it))
    .map((map) => ({ map, entries: [...map] }))
  const members = GROUP_STATE.map((key) => ({ key, value: read(key) }))
  return {
    accept() {
      for (const it of maps) it.entries = [...it.map]
      for (const it of members) it.value = read(it.key)
    },
    restore() {
      for (const { map, entries } of maps) {
        map.clear()
        for (const [label, value] of entries) map.set(label, value)
      }
      for (const { key, value } of members) Reflect.set(console, key, value)
    },
  }
}

/** Members of a stream that Node itself keeps its state in. */
interface StreamMembers {
  _events: object | undefined
  _eventsCount: number
}

type StreamListener = (...args: unknown[]) => void

/** Returns the state of a stream that was made with `options`: its listeners, and all that it has of writes. */
export function stateOfStream(stream: Writable, options: WritableOptions): RestorableState {
  const listeners = (): { name: string | symbol; listener: StreamListener }[] =>
    stream
      .eventNames()
      .flatMap((name) =>
        stream.rawListeners(name).map((it) => ({ name, listener: it as StreamListener })),
      )
  let accepted = listeners()
  return {
    accept() {
      accepted = listeners()
    },
    restore() {
      Object.assign(stream, { _events: undefined, _eventsCount: 0 } satisfies StreamMembers)
      // Makes the state anew, whatever the code did to it: held back, ended, destroyed.
      Reflect.apply(Writable, stream, [options])
      for (const { name, listener } of accepted) stream.on(name, listener)
    },
  }
}

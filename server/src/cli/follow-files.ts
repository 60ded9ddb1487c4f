import { watch } from 'node:fs'
import path from 'node:path'

/** Editors write a file in several steps: changes within this time count as one. */
const SETTLE_MS = 50

/** Calls `changed` after each change of one of `files`, one call at a time, until the program gets a stop signal. */
export async function followFiles(
  files: readonly string[],
  changed: () => Promise<void>,
): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop())
  const names = new Set(files.map((it) => path.resolve(it)))
  let [settling, work] = [false, Promise.resolve()]
  const note = (name: string): void => {
    if (settling || !names.has(name)) return
    settling = true
    setTimeout(() => {
      settling = false
      work = work.then(changed)
    }, SETTLE_MS)
  }
  // Watches folders rather than files: many editors replace the file by a new one.
  const folders = new Set([...names].map((it) => path.dirname(it)))
  const watchers = [...folders].map((folder) =>
    watch(folder, (_, name) => note(path.join(folder, name ?? ''))),
  )
  await stopped
  for (const it of watchers) it.close()
  await work
}

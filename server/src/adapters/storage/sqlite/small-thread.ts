import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * V8 flags for the heap of a thread that keeps little data. The first is the young generation in
 * MiB, half of the memory it takes; the second is the size in MiB at which the old generation is
 * first collected.
 */
const SMALL_HEAP = { '--max-semi-space-size': 1, '--initial-old-space-size': 8 } as const

type HeapFlag = keyof typeof SMALL_HEAP

/**
 * Starts a thread that keeps little in memory; resolves at its first message.
 *
 * A thread's heap is sized at its start by flags of the whole process, which take precedence over
 * `resourceLimits`: with the flags of the main thread, up to 30 MB of garbage would accumulate. So
 * the flags are changed while the thread starts. Another thread started at the same moment may get
 * them too, which only means more frequent collections. Decision 0014.
 */
export async function startSmallThread(url: URL, options: WorkerOptions): Promise<Worker> {
  for (const [flag, mib] of Object.entries(SMALL_HEAP)) setFlagsFromString(`${flag}=${mib}`)
  try {
    const worker = new Worker(url, options)
    await once(worker, 'message')
    return worker
  } finally {
    for (const flag of Object.keys(SMALL_HEAP) as HeapFlag[]) {
      setFlagsFromString(`${flag}=${atStart(flag)}`)
    }
  }
}

/** Returns the value this process was started with; 0 leaves it to V8. */
function atStart(flag: HeapFlag): string {
  const given = process.execArgv.findLast((it) => it.startsWith(`${flag}=`))
  return given === undefined ? '0' : given.slice(flag.length + 1)
}

import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * The heap of a thread that keeps little: MiB of its young generation, half of what that takes, and MiB of everything
 * else at which it is collected for the first time. Flags of V8.
 */
const SMALL_HEAP = { '--max-semi-space-size': 1, '--initial-old-space-size': 8 } as const

type HeapFlag = keyof typeof SMALL_HEAP

/**
 * Starts a thread that keeps little in memory, and resolves at its first message.
 *
 * The heap of a thread is sized as it begins, by flags of the whole process, and `resourceLimits` yields to them: with
 * those of the main thread it would let up to 30 MB of garbage lie. So there are others while it begins. Whoever begins
 * at the same moment may get them too, and would be collected more often, no more. Decision 0014.
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

/** What this process was started with; 0 leaves it to V8. */
function atStart(flag: HeapFlag): string {
  const given = process.execArgv.findLast((it) => it.startsWith(`${flag}=`))
  return given === undefined ? '0' : given.slice(flag.length + 1)
}

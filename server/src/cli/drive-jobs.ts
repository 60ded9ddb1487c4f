import { JOB_POLL_MS, SHUTDOWN_MS_MAX } from '../base/limits.ts'
import type { JobWorker } from '../reactors/jobs/worker.ts'
import { within } from './within.ts'

/**
 * Gives the worker its turns: at once, whenever there is something new, and every JOB_POLL_MS for what is due by time,
 * or was left by another process. There is one turn at a time.
 *
 * `stop` resolves when nothing of it is under way any more, or after `withinMs`: what is left then is cut short.
 */
export function driveJobs(
  worker: Pick<JobWorker, 'turn' | 'stop' | 'abandon' | 'onWork'>,
  everyMs = JOB_POLL_MS,
  withinMs = SHUTDOWN_MS_MAX,
): { readonly stop: () => Promise<void> } {
  let turning: Promise<void> | null = null
  let again = false
  const turn = (): void => {
    again = turning !== null
    turning ??= worker.turn().finally(() => {
      turning = null
      if (again) turn()
    })
  }
  worker.onWork = turn
  const timer = setInterval(turn, everyMs)
  turn()
  return {
    stop: async () => {
      clearInterval(timer)
      worker.onWork = () => {}
      await within(withinMs, worker.stop())
      worker.abandon()
    },
  }
}

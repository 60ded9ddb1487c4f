import { JOB_POLL_MS, SHUTDOWN_MS_MAX } from '../base/limits.ts'
import type { JobWorker } from '../reactors/jobs/worker.ts'
import { within } from './within.ts'

/**
 * Polls the worker: at once, whenever there is new work, and every JOB_POLL_MS for jobs that become due by time or were left
 * by another process. Runs one poll at a time.
 *
 * `stop` resolves once nothing is in flight, or after `withinMs`: whatever is left then is abandoned.
 */
export function driveJobs(
  worker: Pick<JobWorker, 'poll' | 'stop' | 'abandon' | 'onWork'>,
  everyMs = JOB_POLL_MS,
  withinMs = SHUTDOWN_MS_MAX,
): { readonly stop: () => Promise<void> } {
  let polling: Promise<void> | null = null
  let again = false
  const poll = (): void => {
    again = polling !== null
    polling ??= worker.poll().finally(() => {
      polling = null
      if (again) poll()
    })
  }
  worker.onWork = poll
  const timer = setInterval(poll, everyMs)
  poll()
  return {
    stop: async () => {
      clearInterval(timer)
      worker.onWork = () => {}
      await within(withinMs, worker.stop())
      worker.abandon()
    },
  }
}

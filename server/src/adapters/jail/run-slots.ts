import { FairSemaphore } from '../../base/fair-semaphore.ts'
import {
  REACTOR_RUNS_MAX,
  REACTOR_TENANT_RUNS_MAX,
  REACTOR_TENANT_WAITING_MAX,
  REACTOR_WAIT_MS_MAX,
} from '../../base/limits.ts'
import { RunnerBusy } from '../../ports/reactor-runner.ts'

/** Returns the slots for runs, by tenant. RunnerBusy when the queue is full or the wait too long. */
export function createRunSlots(): FairSemaphore {
  return new FairSemaphore({
    max: REACTOR_RUNS_MAX,
    ownerMax: REACTOR_TENANT_RUNS_MAX,
    queueMax: REACTOR_TENANT_WAITING_MAX,
    waitTimeout: () => new Promise((end) => void setTimeout(end, REACTOR_WAIT_MS_MAX).unref()),
    refuse: (why) => new RunnerBusy(why === 'timeout' ? 'It waited too long' : 'Too many wait'),
  })
}

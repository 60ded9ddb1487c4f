import { RunnerUnavailable, type ReactorRunner } from '../../ports/reactor-runner.ts'

/** Runs nothing: without a sandbox, no tenant code is started. */
export const NO_RUNNER: ReactorRunner = {
  level: null,
  guestUser: null,
  hasCapacity: () => true,
  run: async () => {
    throw new RunnerUnavailable('There is no sandbox to run code in')
  },
  close: async () => undefined,
}

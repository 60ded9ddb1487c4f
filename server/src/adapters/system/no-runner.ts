import { RunnerUnavailable, type ReactorRunner } from '../../ports/reactor-runner.ts'

/** Runs nothing: where there are no walls, no code of tenants is begun. */
export const NO_RUNNER: ReactorRunner = {
  level: null,
  hasCapacity: () => true,
  run: async () => {
    throw new RunnerUnavailable('There are no walls to run code behind')
  },
  close: async () => undefined,
}

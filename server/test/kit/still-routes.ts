import { EphemeralKeys } from '../../src/access/ephemeral-keys.ts'
import type { World } from '../../src/ports/world.ts'
import { JobStorage } from '../../src/reactors/jobs/job-storage.ts'
import { routes } from '../../src/routes.ts'
import { STILL_SETTINGS } from './still-settings.ts'

/** Returns all operations for a test to look at. They have no world, so they serve nothing. */
export function stillRoutes(): ReturnType<typeof routes> {
  const storage = new JobStorage({} as World, 0)
  return routes(STILL_SETTINGS, {
    ephemeralKeys: new EphemeralKeys(),
    storage,
    wake: () => {},
  })
}

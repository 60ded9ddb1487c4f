import { JailRunner, type JailSettings } from '../../adapters/jail/jail-runner.ts'
import { NO_WAY } from '../../adapters/jail/no-way.ts'
import type { Config } from '../../config.ts'
import type { GuestUser } from '../../ports/reactor-runner.ts'

export interface Sandbox {
  /** Why no reactor can run; null if reactors can. */
  readonly flaw: string | null
  /** Packages in the settings that are not installed. */
  readonly missing: readonly string[]
  /** Bundled packages that are not installed. */
  readonly notInstalled: readonly string[]
  /** The user whose rights reactors have; null if none can run. */
  readonly guestUser: GuestUser | null
}

export type SandboxOptions = Pick<JailSettings, 'anchor' | 'bubblewrap' | 'wallsTestMsMax'>

/** Tests the sandbox as a start does: our own code attempts everything that the sandbox must prevent. */
export async function openSandbox(
  { reactorLevel, reactorPackages }: Pick<Config, 'reactorLevel' | 'reactorPackages'>,
  options: SandboxOptions = {},
): Promise<Sandbox> {
  const runner = await JailRunner.open({
    level: reactorLevel,
    packages: reactorPackages,
    authorities: [],
    waysOut: NO_WAY,
    ...options,
  })
  const { flaw, missing, notInstalled, guestUser } = runner
  await runner.close()
  return { flaw, missing, notInstalled, guestUser }
}

import { BUNDLED_PACKAGES, MODULES_PACKAGE } from '../../adapters/jail/allowed-modules.ts'
import { WALLS_TEST_MS_MAX } from '../../adapters/jail/self-test.ts'
import { AS_ROOT_ADVICE, describeGuestUser } from '../guest-user.ts'
import { failed, ok, warning, type Check } from './check.ts'

/** The sandbox of reactors, and the packages that they may require. */
export const REACTOR_CHECKS: readonly Check[] = [
  {
    name: 'reactor-sandbox',
    group: 'reactors',
    timeoutMs: WALLS_TEST_MS_MAX + 10_000,
    run: async ({ config: { reactorLevel }, sandbox }) => {
      const { flaw, guestUser } = await sandbox()
      if (flaw !== null) {
        return failed(
          `No reactor can run at the level ${reactorLevel}: ${flaw}.`,
          reactorLevel === 'hardened'
            ? 'Provide the missing part, such as the package bubblewrap, or set SYMBOLON_REACTOR_LEVEL to jail.'
            : 'Provide the missing part; if you use no reactors, ignore this.',
        )
      }
      if (guestUser === 'root' && reactorLevel !== 'portable') {
        return warning(
          `The sandbox at the level ${reactorLevel} withstood every attempt of the self-test, but ${describeGuestUser(guestUser)}.`,
          AS_ROOT_ADVICE,
        )
      }
      if (reactorLevel !== 'portable') {
        return ok(
          `The sandbox at the level ${reactorLevel} withstood every attempt of the self-test: ${describeGuestUser(guestUser ?? 'service')}.`,
        )
      }
      return warning(
        'The level portable has no kernel sandbox: malicious code can escape.',
        'Set SYMBOLON_REACTOR_LEVEL to jail or hardened, unless you trust all authors of reactors.',
      )
    },
  },
  {
    name: 'reactor-modules',
    group: 'reactors',
    run: async ({ sandbox }) => {
      const { notInstalled } = await sandbox()
      if (notInstalled.length === 0) return ok('All bundled packages are installed.')
      // Operators may do without them: decision 0097.
      if (notInstalled.length === BUNDLED_PACKAGES.length) {
        return ok(
          `${MODULES_PACKAGE} is not installed, so reactors can require none of the bundled packages.`,
        )
      }
      return warning(
        `These bundled packages are not installed, and reactors that require them fail: ${notInstalled.join(', ')}.`,
        `Install the version of ${MODULES_PACKAGE} that the service has.`,
      )
    },
  },
  {
    name: 'reactor-packages',
    group: 'reactors',
    applies: ({ reactorPackages }) => reactorPackages.length > 0,
    run: async ({ config: { reactorPackages }, sandbox }) => {
      const { missing } = await sandbox()
      if (missing.length === 0) return ok(`All ${reactorPackages.length} packages are installed.`)
      return warning(
        `These packages are not installed, and reactors that require them fail: ${missing.join(', ')}.`,
        `Run npm install ${missing.join(' ')} beside the service, or remove them from SYMBOLON_REACTOR_PACKAGES.`,
      )
    },
  },
]

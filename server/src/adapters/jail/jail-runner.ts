/**
 * Runs reactors: tenants' code, each in a sandboxed process of its own. Decisions 0030, 0033 and 0034.
 *
 *   run(run)
 *      |
 *   +-- service process ----------------------------------------------------------------+
 *   |  run slots: 64 at a time, 16 per tenant; 64 waiting per tenant, 5 s each          |
 *   |      |                                                                            |
 *   |  picks a GuestProcess, in this order:                                             |
 *   |      warm        same tenant, reactor and version; stopped (SIGSTOP) between runs |
 *   |      finishing   the same, while it checks that its last run left nothing behind  |
 *   |      prewarmed   empty, ready for its first code; 2 are kept                      |
 *   |      fresh       started now                                                      |
 *   |      |                                                                            |
 *   |  GuestProcess <---- frames ----> Broker <----> WaysOut                            |
 *   |      |               (data)      32 connections   toHost: tunnel of the           |
 *   |      |                           64 KiB window      egress gateway                |
 *   |      |                                            toService: in-process           |
 *   |      |                                              connection                    |
 *   |  watch: every 20 ms, kills a run above 320 MiB of private memory                  |
 *   +------|----------------------------------------------------------------------------+
 *          | pipe: descriptor 3, both ways (code, arguments, result, tunnels)
 *          | stderr: read up to 64 KiB, for crash reports
 *   +-- walls, by level --------------------------------------------------------+
 *   |  hardened   bubblewrap namespaces > launcher as in jail                   |
 *   |  jail       launcher: own user, rlimits, Landlock, seccomp > guest        |
 *   |  portable   Node's --permission and refused sockets; no kernel walls      |
 *   |   +-- guest process (guest/main.ts) ------------------------------------+ |
 *   |   |  loads code > runs it > reports; net and tls go over descriptor 3   | |
 *   |   |  TLS to destinations ends here: the service relays ciphertext       | |
 *   |   +---------------------------------------------------------------------+ |
 *   +---------------------------------------------------------------------------+
 *
 * Invariants:
 *  - The walls are self-tested at start. If they do not hold, no reactor ever runs.
 *  - A process belongs to one tenant, reactor and version from its first run until it ends, and has one run at a time.
 *  - Every byte from a guest is untrusted: length checked first, parsed strictly. A guest that breaks the protocol is
 *    killed.
 *  - A guest reaches the network only through the broker, while its code runs, and only the destinations of that run or the
 *    service. When the run ends, the broker closes its tunnels.
 *  - A run that left something behind ends its process: after its result was delivered, and before any other run. Decision
 *    0071.
 *  - Between runs a guest is stopped and uses no processor time. Closing the runner kills every guest.
 */
import { fileURLToPath } from 'node:url'
import {
  REACTOR_PREWARMED,
  REACTOR_PREWARM_AFTER_MS,
  REACTOR_ERROR_BYTES_MAX,
  REACTOR_MEMORY_BYTES_MAX,
  REACTOR_OUTPUT_BYTES_MAX,
  REACTOR_OVER_MS_MAX,
  REACTOR_RESULT_BYTES_MAX,
  REACTOR_WATCH_MS,
} from '../../base/limits.ts'
import {
  RunnerUnavailable,
  type Admit,
  type GuestUser,
  type ReactorLevel,
  type ReactorOutcome,
  type ReactorRunner,
  type SandboxRun,
} from '../../ports/reactor-runner.ts'
import type { WaysOut } from './broker.ts'
import { BUILT_INS, MODULES_PACKAGE } from './allowed-modules.ts'
import { prepareGuestInstallation, type GuestInstallation } from './guest-installation.ts'
import { pathHider } from './guest/hidden-paths.ts'
import { findBubblewrap, hardened } from './hardened.ts'
import { installationPaths } from './installation-paths.ts'
import { jailed } from './jailed.ts'
import { FinishingProcesses } from './finishing-processes.ts'
import { GuestProcess, type GuestSettings, type ReactorOutput } from './guest-process.ts'
import { NO_WAY } from './no-way.ts'
import { ResultReader } from './result-reader.ts'
import { portable } from './portable.ts'
import { findReactorPackages } from './reactor-packages.ts'
import { testWalls, type TestedWalls } from './self-test.ts'
import { createRunSlots } from './run-slots.ts'
import type { GuestFileAccess, Walls } from './walls.ts'
import { WarmProcesses } from './warm-processes.ts'

export interface JailSettings {
  readonly level: ReactorLevel
  /** Packages installed beside the service that code may require, in addition to the bundled ones. */
  readonly packages: readonly string[]
  /** Certificate authorities in PEM that code trusts, in addition to the public ones. */
  readonly authorities: readonly string[]
  readonly waysOut: WaysOut
  /** Receives reactors' output. Dropped by default: it may contain the reactor's input in another form. */
  readonly output?: ReactorOutput | null
  /**
   * Redacts input values from the output, by default. `false` is for callers who supply the input and read the output.
   */
  readonly redacts?: boolean
  /** `false` lets code require any module, to test that the walls hold without these checks. */
  readonly checks?: boolean
  /** Called with the resources used, after each run. */
  readonly measured?: (run: SandboxRun, took: Took) => void
  /** Called with the leftover for which a run's process was ended; empty if there is none. */
  readonly over?: (run: SandboxRun, leftover: string) => void
  /** Time limit for a process to finish a run after its result; `REACTOR_OVER_MS_MAX` by default. */
  readonly overMsMax?: number
  /** Path of bubblewrap, for `hardened`; by default, where distributions install it. */
  readonly bubblewrap?: string
  /** File beside which packages are looked for; this one by default. */
  readonly anchor?: string
  /** Timeout of the walls' self-test in milliseconds; `WALLS_TEST_MS_MAX` by default. */
  readonly wallsTestMsMax?: number
}

/** Resources used by a run. */
export interface Took {
  readonly ms: number
  /** Peak of its private (unshared) memory, as far as observed. */
  readonly privateBytes: number
}

/** Runs each reactor in a process of its own, behind the walls of the configured level. */
export class JailRunner implements ReactorRunner {
  readonly level: ReactorLevel | null
  /** Why no level is available, as a message for the operator; null when one is. */
  readonly flaw: string | null
  /** Requested packages that are not installed. */
  readonly missing: readonly string[]
  /** Bundled packages that are not installed. */
  readonly notInstalled: readonly string[]
  readonly guestUser: GuestUser | null
  readonly #installation: GuestInstallation
  readonly #settings: GuestSettings
  readonly #prewarmed: GuestProcess[] = []
  readonly #warm = new WarmProcesses()
  readonly #running = new Set<GuestProcess>()
  /** All guests that exist, in any state. */
  readonly #guests = new Set<GuestProcess>()
  readonly #slots = createRunSlots()
  readonly #watch: NodeJS.Timeout
  #filling: NodeJS.Timeout | undefined
  readonly #measured: JailSettings['measured']
  readonly #over: JailSettings['over']
  readonly #overMsMax: number
  readonly #finishing = new FinishingProcesses()
  readonly #results = new ResultReader()
  #closed = false

  /**
   * Opens the runner and self-tests the walls. If they do not hold, the runner refuses every run.
   *
   * Prewarmed processes start a little later or with the first run, because starting them would slow down the service's
   * start.
   */
  static async open(settings: JailSettings): Promise<JailRunner> {
    const { level, packages, bubblewrap = findBubblewrap() } = settings
    const { anchor = fileURLToPath(import.meta.url) } = settings
    const { installed, notInstalled } = findReactorPackages(packages, anchor)
    const installation = prepareGuestInstallation(level, installed, bubblewrap)
    const within = { ...settings, waysOut: NO_WAY, checks: false }
    const tested = new JailRunner(within, installation, [], { flaw: null, user: null })
    const walls = await testWalls((run) => tested.#runInFresh(run), level, settings.wallsTestMsMax)
    await tested.#stop()
    const runner = new JailRunner(settings, installation, notInstalled, walls)
    if (walls.flaw === null) runner.#fillLater()
    return runner
  }

  private constructor(
    settings: JailSettings,
    installation: GuestInstallation,
    notInstalled: readonly string[],
    { flaw, user }: TestedWalls,
  ) {
    const { level, packages, authorities, waysOut, output = null } = settings
    const { redacts = true, checks = true } = settings
    this.flaw = flaw
    this.level = flaw === null ? level : null
    this.guestUser = user === null ? null : guestUserOf(user)
    this.#installation = installation
    const { packages: installed, node, launcher, launcherPackages, ownUser } = installation
    const { homes, folders, aliases } = installed
    this.missing = packages.filter((it) => homes[it] === undefined)
    this.notInstalled = notInstalled
    this.#measured = settings.measured
    this.#over = settings.over
    this.#overMsMax = settings.overMsMax ?? REACTOR_OVER_MS_MAX
    const { folder, main } = installation.files
    const hidden = installationPaths(installed, folder, installation)
    const inside = {
      name: checks ? 'node' : node,
      main,
      readable: [folder, ...folders],
      aliases,
      node,
      launcher,
      launcherPackages,
      ownUser,
    }
    this.#settings = {
      walls: wallsOf(settings, inside),
      waysOut,
      results: this.#results,
      output,
      redacts,
      hide: pathHider(hidden),
      setUp: {
        builtIns: [...BUILT_INS],
        packages: homes,
        notInstalled: Object.fromEntries(notInstalled.map((it) => [it, MODULES_PACKAGE])),
        // The tests of the walls need the real ones.
        hidden: checks ? hidden : [],
        checks,
        withoutSockets: level === 'portable',
        authorities,
        outputBytesMax: output === null ? 0 : REACTOR_OUTPUT_BYTES_MAX,
        resultBytesMax: REACTOR_RESULT_BYTES_MAX,
        errorBytesMax: REACTOR_ERROR_BYTES_MAX,
      },
    }
    this.#watch = setInterval(() => this.#look(), REACTOR_WATCH_MS).unref()
  }

  /** Numbers of guests that run code, wait stopped for their own reactor, and wait prewarmed for any reactor. */
  get processes(): { running: number; warm: number; blank: number } {
    const [running, blank] = [this.#running.size, this.#prewarmed.length]
    return { running, warm: Math.max(0, this.#guests.size - running - blank), blank }
  }

  hasCapacity(tenantId: string): boolean {
    return this.#slots.hasCapacity(tenantId)
  }

  async run(run: SandboxRun, admit?: Admit): Promise<ReactorOutcome> {
    if (this.#closed || this.level === null)
      throw new RunnerUnavailable('The sandbox is not available')
    const queued = this.#slots.acquire(run.tenantId)
    if (queued !== undefined) await queued.acquired
    let finished = Promise.resolve()
    try {
      const warm = this.#warm.take(run)
      const guest = warm ?? (await this.#processFor(run))
      if (queued !== undefined || warm === null) await this.#admit(guest, admit)
      warm?.thaw()
      const outcome = await this.#runIn(guest, run)
      finished = this.#finish(guest, run)
      return outcome
    } finally {
      // The caller need not wait for this, but the next run in the queue must.
      void finished.finally(() => this.#slots.release(run.tenantId))
      // After the run: starting a process takes longer than most runs do.
      this.#fill()
    }
  }

  async close(): Promise<void> {
    await this.#stop()
    this.#installation.files.remove()
  }

  async #stop(): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    clearTimeout(this.#filling)
    this.#warm.close()
    for (const it of this.#guests) it.kill()
    await Promise.all([...this.#guests].map((it) => it.ended))
    await this.#results.close()
  }

  /** Starting a process may take as long as a wait in the queue. A process that was for nothing is ended. */
  async #admit(guest: GuestProcess, admit: Admit | undefined): Promise<void> {
    try {
      await admit?.()
    } catch (error) {
      guest.kill()
      throw error
    }
  }

  async #processFor(run: SandboxRun): Promise<GuestProcess> {
    // Takes less than a tenth of the time that another process would. It is tried once: each may take a second, and end.
    const guest = await this.#finishing.take(run)
    return guest ?? (await readied(this.#prewarmed.shift() ?? this.#start()))
  }

  async #runInFresh(run: SandboxRun): Promise<ReactorOutcome> {
    const guest = await readied(this.#start())
    try {
      return await this.#runIn(guest, run)
    } finally {
      guest.kill()
    }
  }

  async #runIn(guest: GuestProcess, run: SandboxRun): Promise<ReactorOutcome> {
    this.#running.add(guest)
    const begun = performance.now()
    const outcome = await guest.run(run)
    const ms = performance.now() - begun
    this.#measured?.(run, { ms, privateBytes: guest.privateBytesMax() })
    return outcome
  }

  /** Keeps the process of a run that left nothing behind, for the next run of its reactor, and ends any other. */
  async #finish(guest: GuestProcess, run: SandboxRun): Promise<void> {
    const handOver = this.#finishing.put(run, guest)
    const clean = (await guest.over(this.#overMsMax)) && !this.#closed
    this.#running.delete(guest)
    this.#over?.(run, guest.leftover ?? '')
    if (handOver(clean)) return
    if (clean) {
      guest.freeze()
      this.#warm.put(run, guest)
    } else guest.kill()
  }

  #fillLater(): void {
    const fill = (): void => {
      try {
        this.#fill()
      } catch {
        // If no process can be started, the first run tries again and reports the error.
      }
    }
    this.#filling = setTimeout(fill, REACTOR_PREWARM_AFTER_MS).unref()
  }

  /** Starts prewarmed processes up to the target number. */
  #fill(): void {
    while (!this.#closed && this.#prewarmed.length < REACTOR_PREWARMED)
      this.#prewarmed.push(this.#start())
  }

  #start(): GuestProcess {
    if (this.#closed) throw new RunnerUnavailable('Closed')
    const guest = new GuestProcess(this.#settings)
    this.#guests.add(guest)
    void guest.ended.then(() => this.#guests.delete(guest))
    guest.ready.catch(() => {
      const index = this.#prewarmed.indexOf(guest)
      if (index >= 0) this.#prewarmed.splice(index, 1)
    })
    return guest
  }

  #look(): void {
    for (const it of this.#running) {
      if (it.privateBytes() > REACTOR_MEMORY_BYTES_MAX) it.kill('out-of-memory')
    }
    this.#warm.look()
  }
}

/** `user` is the id that a guest found that it had. */
function guestUserOf(user: number): GuestUser {
  if (user === 0) return 'root'
  return user === process.getuid?.() ? 'service' : 'own'
}

function wallsOf({ level, bubblewrap }: JailSettings, inside: GuestFileAccess): Walls {
  if (level === 'hardened') return hardened(inside, bubblewrap)
  return level === 'jail' ? jailed(inside) : portable(inside)
}

async function readied(guest: GuestProcess): Promise<GuestProcess> {
  try {
    await guest.ready
    return guest
  } catch (error) {
    throw new RunnerUnavailable('No process can be started', { cause: error })
  }
}

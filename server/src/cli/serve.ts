import { setUp, type TenantSetUp } from '../access/applications/set-up.ts'
import { hasRootKey } from '../adapters/local-keyring/root-key-file.ts'
import { isDatabaseGone } from '../adapters/storage/sqlite/data-folder.ts'
import { makeDataFolder } from '../adapters/storage/sqlite/make-data-folder.ts'
import { takeOrders } from '../adapters/system/control-socket.ts'
import { Meters } from '../adapters/metrics/meters.ts'
import { serveMetrics, type MetricsServer } from '../adapters/metrics/metrics-server.ts'
import { processFamilies } from '../adapters/metrics/process-families.ts'
import { storeFamilies } from '../adapters/metrics/store-families.ts'
import { createApp, type AppSettings } from '../app.ts'
import { PLANS } from '../base/access.ts'
import {
  ACCESS_CHECK_MS,
  AUDIT_CHECKPOINT_MS,
  AUDIT_SWEEP_MS,
  CHECKPOINT_FILE_MS_MAX,
  NOTICES_MS,
  ROTATION_RESUME_MS,
  SHUTDOWN_MS_MAX,
  MiB,
} from '../base/limits.ts'
import {
  ignoredVariables,
  readConfig,
  unknownVariables,
  type Config,
  type Flags,
} from '../config.ts'
import type { FieldBuilds } from '../fields/field-builds.ts'
import { connectInProcess } from '../http/connection/in-process-connections.ts'
import { listen, tryBinding } from '../http/listen.ts'
import { accessChecker } from '../audit/verify-access-rows.ts'
import { auditCheckpointer } from '../audit/checkpoint.ts'
import { UnreadableValue } from '../ports/unreadable-value.ts'
import { checkAndRepairRootKey } from '../integrity/root-key-check-damage.ts'
import { lostTipReporter } from '../audit/lost-tips.ts'
import { sweepAuditLogs } from '../audit/retention.ts'
import { CheckpointAnnouncer } from '../audit/checkpoint-announcer.ts'
import type { Log } from '../ports/log.ts'
import { upgradeAndLog } from './audit-upgrade.ts'
import { checkCheckpointFile, openCheckpointFile } from './checkpoint-file.ts'
import type { CommandInput, RunCommand } from './command.ts'
import { DEFAULT_TENANT_NAME } from './init.ts'
import { listenAddressOf, metricsAddressesOf } from './listen-addresses.ts'
import { openFieldBuilds } from './open-field-builds.ts'
import { openWorld, type OpenWorld, type OwnService } from './open-world.ts'
import { driveJobs } from './drive-jobs.ts'
import { recoveryLogger } from './recovery-notices.ts'
import { executeProtectionOrder, parseProtectionOrder } from './protection-order.ts'
import { isChallengeOrder, parseRecoveryOrder, Recoveries } from './recovery-order.ts'
import { parseRotationOrder, executeRotationOrder } from './rotation-order.ts'
import { Rotations } from './rotations.ts'
import { announceServer } from './server-notices.ts'
import { Sweeper } from './sweeper.ts'
import { version } from './version.ts'
import { within } from './within.ts'

/**
 * `symbolon serve`: creates what is missing, listens, and stops gracefully on a signal.
 *
 * Listens last, so that a start that fails accepts no connection, and none waits during a long start.
 */
export const serve: RunCommand = async ({ flags, out }) => {
  const config = readConfig(flags)
  await tryBinding(listenAddressOf(config), metricsAddressesOf(config))
  await checkCheckpointFile(config)
  const gone = config.databaseUrl === null && isDatabaseGone(config.dataDir)
  const stop = stopSignal()
  const meters = config.metricsPort === null ? undefined : new Meters()
  const opened = await openWorld(config, {
    onFault: stop.fault,
    reactors: true,
    ...(meters && { meters }),
  })
  const { world } = opened
  const closers: (() => Promise<void>)[] = [opened.close]
  try {
    const checkpointFile = await openCheckpointFile(config)
    await prepareVault(out, config, opened, gone)
    warnOfVariables(world.log, flags)

    const app = createApp(world, appSettingsOf(config, openFieldBuilds(world.log)))
    const rotations = new Rotations(world, opened.keyMaker)
    const logRecoveries = recoveryLogger(world)
    await logRecoveries()
    if (config.databaseUrl !== null) closers.push(await announceServer(opened))
    closers.push(await takeOrdersIn(config.dataDir, opened, { rotations, logRecoveries }))
    if (meters !== undefined) closers.push((await measure(config, opened, meters)).close)
    const announcer = new CheckpointAnnouncer(world, checkpointFile)
    const writeCheckpoints = auditCheckpointer(world, announcer.announce)
    const checkpoint = async (): Promise<void> => {
      await writeCheckpoints()
      void announcer.flush()
    }
    // Events of the last run should not wait behind those of the first requests. A failure comes again, once a second.
    await checkpoint().catch(() => {})
    const host = config.host
    const port = await listen(app, { host, port: config.port }, (port) => {
      const connect: OwnService['connect'] = (it) => connectInProcess(app, it)
      opened.serves({ port, connect })
    })
    out(`Symbolon ${version()} is ready at ${addressOf(host, port)}`)

    const sweeper = new Sweeper(world)
    const resumed = rotations.resume()
    let stopping = false
    const announced = world.store.tenants
      .ids()
      .then((ids) => announcer.announceCurrent(ids, () => !stopping))
      .catch((error) => world.log.error('audit_checkpoints_not_announced', error))
    const housekeeping = [
      every(AUDIT_CHECKPOINT_MS, checkpoint),
      every(AUDIT_CHECKPOINT_MS, lostTipReporter(world)),
      every(AUDIT_SWEEP_MS, () =>
        sweepAuditLogs(world, config.auditRetentionDays, announcer.announce),
      ),
      every(ACCESS_CHECK_MS, accessChecker(world)),
      every(NOTICES_MS, logRecoveries),
      every(ROTATION_RESUME_MS, () => rotations.resumeInterrupted()),
    ]
    const jobs = driveJobs(app.jobs)

    const reason = await stop.asked
    if (reason.error !== undefined) world.log.error('store_failed', reason.error)
    world.log.info('stopping', { reason: reason.why })
    stopping = true
    for (const it of housekeeping) it.stop()
    await Promise.all([within(SHUTDOWN_MS_MAX, app.close()), jobs.stop()])
    await Promise.all([sweeper.stop(), rotations.stop(), resumed, announced])
    // The last events should not have to wait for the next start to be covered by a checkpoint.
    const logFailure = (error: unknown): void => world.log.error('audit_checkpoint_failed', error)
    if (reason.status === 0) await checkpoint().catch(logFailure)
    await within(CHECKPOINT_FILE_MS_MAX, announcer.flush())
    return reason.status
  } finally {
    await closeAll(closers.toReversed(), world.log)
  }
}

function appSettingsOf(config: Config, fieldBuilds: FieldBuilds): AppSettings {
  return {
    fieldBuilds,
    version: version(),
    corsOrigins: config.corsOrigins,
    publicAddress: {
      url: config.publicUrl,
      fieldsUrl: config.fieldsUrl,
      trustedProxies: config.trustedProxies,
    },
    requestLimits: {
      perKey: config.publicKeyRequestsPerMinute,
      perAddress: config.publicAddressRequestsPerMinute,
    },
    callbackRetryBaseMs: config.callbackRetryBaseMs,
    tokens: { tokensMax: config.tokenizeTokensMax, privacyShown: config.tokenPrivacy },
    transactions: {
      lifetimeMs: config.transactionLifetimeS * 1000,
      openMax: config.transactionsOpenMax,
      publicOpenMax: config.publicTransactionsOpenMax,
    },
    proxy: { timeoutMs: config.proxyTimeoutMs },
    reactors: {
      jobStorageBytesMax: config.jobStorageMiB * MiB,
      configurationRequired: config.reactorConfiguration === 'required',
      responseHeaders: { allowed: config.reactorResponseHeaders, origin: config.publicUrl },
    },
  }
}

/** Runs all of them, in order: one that fails must not keep the store open. */
async function closeAll(closers: readonly (() => Promise<void>)[], log: Log): Promise<void> {
  for (const close of closers) await close().catch((error) => log.error('close_failed', error))
}

/** Checks the root key; on the first start, sets the vault up and prints its key. */
async function prepareVault(
  out: CommandInput['out'],
  config: Config,
  opened: OpenWorld,
  gone: boolean,
): Promise<void> {
  const { world, keyProvider } = opened
  const damage = await checkAndRepairRootKey(world.store, opened.keyRepair, keyProvider)
  if (damage !== null) {
    const error = new UnreadableValue(damage)
    world.log.error('value_unreadable', error, { count: 1, values: [{ ...damage }] })
  }
  await upgradeAndLog(world, keyProvider)
  const next = config.rootKeyNextFile
  if (next !== null && !(await hasRootKey(next))) {
    const hint = 'there is no such file: create it with symbolon keys create-root, and restart'
    world.log.warn('root_key_next_missing', { file: next, hint })
  }
  if ((await world.store.tenants.rootKeyCheck()) === null) {
    const made = await setUp(world, keyProvider, { name: DEFAULT_TENANT_NAME, plan: PLANS[0] })
    greet(out, config, opened, made)
    // The operator may have wanted a fresh start. If not, they need to know before it fills.
    if (gone) world.log.warn('database_gone', { folder: config.dataDir })
  } else if ((await world.store.tenants.count()) === 0) {
    // An operator who deleted the last tenant did not ask for another, whose key would end up in some log.
    world.log.warn('no_tenant', { hint: 'stop, make one with symbolon init, start again' })
  }
}

function warnOfVariables(log: Log, flags: Flags): void {
  const unknown = unknownVariables()
  if (unknown.length > 0) log.warn('unknown_variables', { variables: unknown })
  const ignored = ignoredVariables(flags)
  if (ignored.length === 0) return
  const hint = 'Kubernetes set them to the address of a Service; the defaults apply'
  log.warn('ignored_variables', { variables: ignored, hint })
}

/** Executes the operator's commands until the returned function is called. */
async function takeOrdersIn(
  folder: string,
  opened: OpenWorld,
  { rotations, logRecoveries }: { rotations: Rotations; logRecoveries: () => Promise<void> },
): Promise<() => Promise<void>> {
  try {
    // With the database and the root key elsewhere, nothing has created the folder yet.
    makeDataFolder(folder)
    const recoveries = new Recoveries(opened)
    const { close } = await takeOrders(folder, async (order, report) => {
      const rotation = parseRotationOrder(order)
      const recovery = parseRecoveryOrder(order)
      const protection = parseProtectionOrder(order)
      if (isChallengeOrder(order)) report({ challenge: recoveries.challenge() })
      else if (rotation !== null) await executeRotationOrder(opened, rotations, rotation, report)
      else if (recovery !== null) {
        report({ recovered: await recoveries.execute(recovery) })
        await logRecoveries()
      } else if (protection !== null) {
        report({ marked: await executeProtectionOrder(opened.world, protection) })
      } else throw new Error('The service does not know such an order')
    })
    return close
  } catch (error) {
    // Not every file system supports sockets, and requests do not need them.
    opened.world.log.warn('no_orders', {}, error as Error)
    return async () => {}
  }
}

interface StopReason {
  readonly why: string
  readonly status: number
  /** Why the store can no longer be written. */
  readonly error?: unknown
}

/** Resolves `asked` at the first signal to stop, or when the store can no longer be written. */
function stopSignal(): { asked: Promise<StopReason>; fault: (error: unknown) => void } {
  const { promise: asked, resolve } = Promise.withResolvers<StopReason>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => resolve({ why: signal, status: 0 }))
  }
  const why = 'the store cannot be written'
  return { asked, fault: (error) => resolve({ why, status: 1, error }) }
}

/**
 * Runs `work` at once and `ms` after each end of it. `work` reports its own failures; any that still reaches this function
 * is ignored, and the next run tries again.
 */
function every(ms: number, work: () => Promise<void>): { readonly stop: () => void } {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const run = (): void => {
    const again = (): void => {
      if (!stopped) timer = setTimeout(run, ms)
    }
    work().then(again, again)
  }
  run()
  return {
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Serves metrics if the settings enable them. */
async function measure(
  config: Config,
  { world, families, owns }: OpenWorld,
  meters: Meters,
): Promise<MetricsServer> {
  const ofProcess = processFamilies(version())
  const ofStore = storeFamilies(world.clock, world.store)
  const server = await serveMetrics(config.metricsHost, config.metricsPort!, async () => [
    ...ofProcess(),
    ...meters.families(),
    ...families(),
    ...(await ofStore()),
  ])
  // The metrics endpoint has no authentication, so code and proxies that can send requests to this machine must not reach it.
  owns(server.port)
  world.log.info('metrics', { port: server.port })
  return server
}

/** Prints the first-run message: how to begin, and what to do before production. */
function greet(
  out: CommandInput['out'],
  config: Config,
  { rootKeyFile }: OpenWorld,
  made: TenantSetUp,
): void {
  out('')
  out('  Welcome to Symbolon. This is the first start, so a vault was made for you:')
  out('')
  out(`    data folder     ${config.dataDir}`)
  out(`    root key        ${rootKeyFile}`)
  out(`    tenant_id       ${made.tenantId}`)
  out(`    application_id  ${made.applicationId}`)
  out(`    api_key         ${made.apiKey}`)
  out('')
  out('  The key is a management key. It is shown this once: keep it.')
  if (config.rootKeyFile === null) {
    out('  The root key lies beside the data, which is fine for a try. In production keep it')
    out('  elsewhere (SYMBOLON_ROOT_KEY_FILE): anyone with both can read everything, and')
    out('  without it nothing can be read.')
  }
  out('')
}

function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/**
 * The reasons a test uses one server; nothing else exempts a vault from having two when the run uses two.
 *
 * A still vault gets the reason as `oneServer` when it is opened. Files that create a server without `stillVault()` or
 * `startService()` are in the table below, which a test of `npm run test:two` checks against the source.
 */
export const ONE_SERVER = {
  'what is under way':
    'a repeated request in the same process is refused before its commit; one in another process at it, which has its own tests',
  'what is forgotten at once':
    'the server that deletes a tenant forgets its keys at once, another one with its next sweep',
  'a data key is replaced':
    'at once, with no time for another server to read it: decision 0044; flows/rotation.test.ts has two',
  'a process by itself':
    'flags, signals, output, memory, ports, connections and commands are of one process, whatever it shares',
  'a data folder is looked into':
    'the test reads, changes, copies or moves the file that everything is in, and a file has one server',
  'a server is harmed':
    'killed, or cut off from its database: what it leaves behind is looked at; flows/two-servers.test.ts kills one of two',
  'there are several already': 'the test makes them itself, to say which of them is asked for what',
  'nothing is served':
    'a command is run to its end, or what starts the program is tried with another in its place',
  'who calls decides':
    'it is one server for others to start, who ask how many there are to be or are in this table',
} as const

export type OneServerReason = keyof typeof ONE_SERVER

/** Every file that creates a server regardless of the number the run uses. */
export const MAKE_ONE_SERVER: Readonly<Record<string, OneServerReason>> = {
  'crash/harness.ts': 'a server is harmed',
  'crash/server.ts': 'who calls decides',
  'test/attacks/audit-checkpoints.test.ts': 'a data folder is looked into',
  'test/attacks/audit-rollback.test.ts': 'a data folder is looked into',
  'test/attacks/client-abort.test.ts': 'a process by itself',
  'test/attacks/guest-costs/costly-guests.ts': 'a process by itself',
  'test/attacks/proxy-overload.test.ts': 'a process by itself',
  'test/attacks/reactors.test.ts': 'a data folder is looked into',
  'test/attacks/rights/stage.ts': 'a process by itself',
  'test/attacks/tampering.test.ts': 'a data folder is looked into',
  'test/backup/run.ts': 'a data folder is looked into',
  'test/cuts/harness.ts': 'a server is harmed',
  'test/damage/each-kind.ts': 'a data folder is looked into',
  'test/doctor/data-folder.test.ts': 'a data folder is looked into',
  'test/doctor/database.test.ts': 'a data folder is looked into',
  'test/doctor/doctor-stage.ts': 'a data folder is looked into',
  'test/doctor/healthy.test.ts': 'a data folder is looked into',
  'test/doctor/postgres.test.ts': 'a data folder is looked into',
  'test/doctor/settings.test.ts': 'a data folder is looked into',
  'test/doctor/work.test.ts': 'a data folder is looked into',
  'test/flows/audit-log-behind.test.ts': 'a server is harmed',
  'test/flows/audit-verify.test.ts': 'a data folder is looked into',
  'test/flows/canary.ts': 'a data folder is looked into',
  'test/flows/checkpoint-file.test.ts': 'a process by itself',
  'test/flows/clock-jumps.test.ts': 'a process by itself',
  'test/flows/configuration-protect.test.ts': 'a process by itself',
  'test/flows/damage.test.ts': 'a data folder is looked into',
  'test/flows/exemptions-of-a-tenant.test.ts': 'a process by itself',
  'test/flows/full-disk.test.ts': 'a data folder is looked into',
  'test/flows/keys-recover.test.ts': 'a process by itself',
  'test/flows/keys-rotate.test.ts': 'a process by itself',
  'test/flows/metrics.test.ts': 'a process by itself',
  'test/flows/migrate-command.test.ts': 'a data folder is looked into',
  'test/flows/no-create.test.ts': 'a process by itself',
  'test/flows/postgres.test.ts': 'there are several already',
  'test/flows/reactor-run.test.ts': 'nothing is served',
  'test/flows/reactors-as-root.test.ts': 'a process by itself',
  'test/flows/start-and-stop.test.ts': 'a process by itself',
  'test/flows/start-contract.test.ts': 'a process by itself',
  'test/flows/start-port.test.ts': 'a process by itself',
  'test/flows/sweep.test.ts': 'a data folder is looked into',
  'test/interface/callbacks.test.ts': 'there are several already',
  'test/interface/idempotency.test.ts': 'there are several already',
  'test/jobs/harness.ts': 'a server is harmed',
  'test/kit/hosted-vault.test.ts': 'a process by itself',
  'test/kit/hosted-vault.ts': 'who calls decides',
  'test/kit/running-vault.ts': 'who calls decides',
  'test/launcher/main.ts': 'a server is harmed',
  'test/migrate/run.ts': 'nothing is served',
  'test/migrate/service.ts': 'a data folder is looked into',
  'test/package/build.test.ts': 'nothing is served',
  'test/package/launcher.test.ts': 'a server is harmed',
  'test/rotation/run.ts': 'there are several already',
  'test/rotation/server.ts': 'who calls decides',
  'test/switchovers/harness.ts': 'there are several already',
  'test/two-servers/harness.ts': 'there are several already',
  'test/upgrade/run.ts': 'there are several already',
}

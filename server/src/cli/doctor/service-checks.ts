import { probeHealth, type Health } from '../../adapters/system/health-probe.ts'
import type { Config } from '../../config.ts'
import { listenAddressOf } from '../listen-addresses.ts'
import { tryBinding } from '../../http/listen.ts'
import { failed, ok, type Check, type Finding } from './check.ts'
import type { DoctorContext } from './context.ts'
import { reasonOf } from './run-checks.ts'

/** How long a service may take to answer, in milliseconds; its store is given as long for a commit. */
const ANSWER_MS_MAX = 6_000

/** The service that uses the data folder, if one is running, and its port. */
export const SERVICE_CHECKS: readonly Check[] = [
  { name: 'service', group: 'service', run: checkService },
]

async function checkService({ config, service }: DoctorContext): Promise<Finding> {
  const { host, port } = config
  const who = service.pid === null ? 'A process' : `Process ${service.pid}`
  const holds = `${who} uses the data folder`
  if (port === 0) {
    if (service.running) return ok(`${holds}; its start chose the port.`)
    return ok('No service is running; the start will choose its port.')
  }
  const place = `${host}, port ${port}`
  const unusable = service.running ? null : await tryAddress(config, place)
  if (unusable !== null) return unusable
  const health = await probeHealth(host, port, ANSWER_MS_MAX)
  if (service.running) return findingOfRunning(health, holds, place)
  if (health.kind === 'nothing') return ok(`No service is running, and ${place} is free.`)
  // With PostgreSQL, a server may run with another user's data folder, or without one.
  if (health.kind === 'symbolon' && config.databaseUrl !== null) {
    if (health.ready) return ok(`A service answers at ${place}, and is ready.`)
    return failed(`The service at ${place} is not ready.`, READ_THE_LOG)
  }
  const other = health.kind === 'symbolon' ? 'another Symbolon' : 'another program'
  return failed(
    `No service uses the data folder, and ${other} answers at ${place}.`,
    health.kind === 'symbolon'
      ? 'Set SYMBOLON_DATA_DIR to the folder of that service, or SYMBOLON_PORT to another port.'
      : 'Stop that program, or set SYMBOLON_PORT to another port.',
  )
}

function findingOfRunning(health: Health, holds: string, place: string): Finding {
  if (health.kind === 'symbolon') {
    if (health.ready) return ok(`${holds}, and a service at ${place} is ready.`)
    return failed(`${holds}, and the service at ${place} is not ready.`, READ_THE_LOG)
  }
  if (health.kind === 'other') {
    return failed(
      `${holds}, and ${place} answers with ${health.answer}.`,
      `${READ_THE_LOG} If another program listens there, set SYMBOLON_PORT to the port of the service.`,
    )
  }
  return failed(
    `${holds}, and nothing listens at ${place}.`,
    'Run symbolon doctor with the host and port of the service (SYMBOLON_HOST, SYMBOLON_PORT); ' +
      'if it listens nowhere, it is another command, such as symbolon init: wait until it ends.',
  )
}

/** Tries a free port of the address, which cannot collide with a service that starts now. Returns null if that works. */
async function tryAddress(config: Config, place: string): Promise<Finding | null> {
  try {
    await tryBinding({ ...listenAddressOf(config), port: 0 }, [])
    return null
  } catch (error) {
    return failed(
      `A start could not listen at ${place}: ${reasonOf(error as Error)}.`,
      'Set SYMBOLON_HOST to localhost, or to an address of this machine.',
    )
  }
}

const READ_THE_LOG = 'Read the last errors in its log, and restart it if they persist.'

/**
 * Removes the functions that create sockets or reach other processes, for levels without a wall against them.
 *
 * This is no security boundary: the code that runs here can undo it. It stops careless code from using what other
 * levels would refuse.
 */
import dgram from 'node:dgram'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import os from 'node:os'

export function refuseSockets(): void {
  net.Server.prototype.listen = refuse
  Object.assign(net, { _createServerHandle: refuse })
  refuseAll(dgram)
  refuseAll(dns)
  refuseAll(dns.promises)
  os.setPriority = refuse
  Object.assign(process, { kill: refuse, _kill: refuse, _debugProcess: refuse })
  syncBuiltinESMExports()
}

function refuseAll(module: object): void {
  for (const [name, it] of Object.entries(module)) {
    if (typeof it === 'function') Object.assign(module, { [name]: refuse })
  }
}

function refuse(): never {
  throw Object.assign(new Error('Reactors have no sockets of their own'), { code: 'EPERM' })
}

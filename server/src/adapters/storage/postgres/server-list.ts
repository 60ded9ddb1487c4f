import type { ClientConfig } from 'pg'

/** One of the servers that an address names. */
export interface DatabaseServer {
  /** A name, an IP address, or the folder of a socket. */
  readonly host: string
  readonly port?: number
  readonly ssl: ClientConfig['ssl']
}

/**
 * The servers of an address, one of which is the primary. Shared by all connections: each attempt takes the preferred
 * server, and as many attempts as there are servers find the primary if it can be reached.
 */
export class ServerList {
  readonly all: readonly DatabaseServer[]
  #preferred = 0

  constructor(servers: readonly DatabaseServer[]) {
    this.all = servers
  }

  /** The server that was the primary last, or the next one to try. */
  get preferred(): DatabaseServer {
    return this.all[this.#preferred]!
  }

  /** Prefers the server after `failed`, unless another connection has already done so. */
  moveOn(failed: DatabaseServer): void {
    if (this.preferred === failed) this.#preferred = (this.#preferred + 1) % this.all.length
  }
}

import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { connect } from 'node:tls'

/** Returns the first record of Node's own TLS client, which asks for this server name; for none if it is empty. */
export async function clientHello(servername: string): Promise<Buffer> {
  const [client, server] = duplexPair()
  const tls = connect({ socket: client, servername }).on('error', () => {})
  const [hello] = (await once(server, 'data')) as [Buffer]
  tls.destroy()
  return hello
}

/**
 * How the iframes of a group reach each other without the page.
 *
 * They are documents of one origin, so the coordinator can inspect its siblings and hand a port to those of its group and key.
 * The page sees neither the port nor what goes through it, since the event that carries the port fires in the sibling.
 */
import type { CardFieldName } from '../protocol/messages.ts'

/** The document of a field in another iframe. */
export interface Sibling {
  readonly port: MessagePort
  readonly fields: readonly CardFieldName[]
}

interface Invitation {
  readonly symbolon: 'join'
}

/** Announces this document's group and fields to its siblings. */
export function announceField(group: string, fields: readonly CardFieldName[]): void {
  const { dataset } = document.documentElement
  dataset['group'] = group
  dataset['fields'] = fields.join(' ')
}

/** Calls `onPort` with each port handed over by a coordinator with the same key as this document. */
export function acceptCoordinator(onPort: (port: MessagePort) => void): void {
  addEventListener('message', ({ source, origin, data, ports }: MessageEvent<unknown>) => {
    const [port] = ports
    if (port === undefined || origin !== location.origin) return
    if ((data as Partial<Invitation> | null)?.symbolon !== 'join') return
    if (pathOf(source as Window) === location.pathname) onPort(port)
  })
}

/**
 * Returns the current documents of `group`, and hands a port to each that is not in `known`. An iframe that was moved or
 * reloaded has a new document.
 */
export function inviteFields(
  group: string,
  known: ReadonlyMap<Document, Sibling>,
): ReadonlyMap<Document, Sibling> {
  const siblings = new Map<Document, Sibling>()
  for (let at = 0; at < parent.length; at++) {
    const sibling = parent[at]!
    if (sibling === window || pathOf(sibling) !== location.pathname) continue
    const { document } = sibling
    const { dataset } = document.documentElement
    if (dataset['group'] !== group) continue
    const fields = (dataset['fields']?.split(' ') ?? []) as CardFieldName[]
    siblings.set(document, known.get(document) ?? { port: invite(sibling), fields })
  }
  return siblings
}

function invite(sibling: Window): MessagePort {
  const { port1, port2 } = new MessageChannel()
  const invitation: Invitation = { symbolon: 'join' }
  sibling.postMessage(invitation, location.origin, [port2])
  return port1
}

/** Returns the path, which contains the key's hash, of a document of this origin; null for any other document. */
function pathOf(it: Window): string | null {
  try {
    return it.location.origin === location.origin ? it.location.pathname : null
  } catch {
    return null
  }
}

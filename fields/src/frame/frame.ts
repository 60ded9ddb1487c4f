/** Entry of the iframe: connects to the page, takes the role it asks for, and does what it calls. */
import type {
  CallResult,
  Configuration,
  FrameMessage,
  PageCall,
  PageMessage,
} from '../protocol/messages.ts'
import { styleFault, type StyleRules } from '../protocol/style-rules.ts'
import { styleSheetOf } from './apply-styles.ts'
import { configurationFault } from './configuration-fault.ts'
import { connectPage, originsOf } from './connect-page.ts'
import { problemOf, refusal } from './problems.ts'
import { startRole, type Role } from './roles.ts'
import { textsFor } from './texts/texts.ts'
import { CallError } from './vault-client.ts'

const port = await connectPage(originsOf(document))
let configured = false
let role: Role | null = null
let pageSheet: CSSStyleSheet | null = null

port.addEventListener('message', ({ data }: MessageEvent<PageMessage>) => {
  receive(data).catch((error: unknown) => send({ type: 'refused', problem: problemOf(error) }))
})
port.start()

function send(message: FrameMessage): void {
  port.postMessage(message)
}

async function receive(message: PageMessage): Promise<void> {
  switch (message.type) {
    case 'configure':
      // Once: a document belongs to one key.
      if (configured) return
      configured = true
      await start(message.configuration)
      break
    case 'style':
      style(message.styles)
      break
    case 'focus':
      role?.focus(message.field)
      break
    case 'clear':
      role?.clear()
      break
    default:
      await answer(message)
  }
}

async function start(configuration: Configuration): Promise<void> {
  const fault = await configurationFault(configuration)
  if (fault !== null) throw new CallError(refusal('configuration_invalid', fault))
  const texts = textsFor(configuration.locale)
  const root = document.documentElement
  root.lang = texts.language
  root.dir = texts.direction
  root.style.colorScheme = configuration.colorScheme
  document.title = texts.title
  style(configuration.styles)
  role = startRole(configuration, texts, send)
  document.body.replaceChildren(...role.elements)
  const tellHeight = (): void => {
    send({ type: 'resize', height: Math.ceil(root.getBoundingClientRect().height) })
  }
  // Before `ready`, after which a page may show the element, or a buyer click in it.
  tellHeight()
  new ResizeObserver(tellHeight).observe(root)
  send({ type: 'ready' })
}

async function answer(message: PageCall): Promise<void> {
  const { call } = message
  try {
    // Each handler takes calls of its own type, by which it is found.
    const handler = role?.calls[message.type] as Handler | undefined
    if (handler === undefined) throw new CallError(refusal('call_unknown', UNKNOWN))
    const result = await handler(message)
    send({ type: 'result', call, result })
  } catch (error) {
    send({ type: 'failure', call, problem: problemOf(error) })
  }
}

type Handler = (call: PageCall) => Promise<CallResult>

const UNKNOWN = 'This element cannot do that. Is it the right one?'

function style(styles: StyleRules): void {
  const fault = styleFault(styles)
  if (fault !== null) throw new CallError(refusal('configuration_invalid', fault))
  const sheet = styleSheetOf(styles)
  const others = document.adoptedStyleSheets.filter((it) => it !== pageSheet)
  document.adoptedStyleSheets = [...others, sheet]
  pageSheet = sheet
}

/** Entry point of the iframe: connects to the page, takes the role that it configures, and answers its calls. */
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
import { textsFor, type Texts } from './texts/texts.ts'
import { CallError } from './frame-client.ts'

const port = await connectPage(originsOf(document))
let configured = false
let role: Role | null = null
let pageSheet: CSSStyleSheet | null = null
let sentHeight: number | null = null

port.addEventListener('message', ({ data }: MessageEvent<PageMessage>) => {
  receive(data).catch((error: unknown) => send({ type: 'refused', problem: problemOf(error) }))
})
port.start()

// The back/forward cache keeps the page, and would show the card to anyone who presses the Back button.
addEventListener('pagehide', () => role?.clear())

function send(message: FrameMessage): void {
  port.postMessage(message)
}

async function receive(message: PageMessage): Promise<void> {
  switch (message.type) {
    case 'configure':
      // Only once: a document belongs to one key.
      if (configured) return
      configured = true
      await start(message.configuration)
      break
    case 'style':
      try {
        style(message.styles)
      } catch (error) {
        send({ type: 'style-refused', problem: problemOf(error) })
      }
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
  document.title = titleOf(configuration, texts)
  // Others may have been set meanwhile.
  if (pageSheet === null) style(configuration.styles)
  role = startRole(configuration, texts, send)
  document.body.replaceChildren(...role.elements)
  new ResizeObserver(sendHeight).observe(root)
  // Browsers do not render offscreen iframes, nor run their resize observers.
  const everything = { subtree: true, childList: true, characterData: true, attributes: true }
  new MutationObserver(sendHeight).observe(document.body, everything)
  sendHeight()
  send({ type: 'ready', title: document.title })
}

/** Returns the document's title for screen readers. A single field is titled by its label. */
function titleOf(configuration: Configuration, texts: Texts): string {
  if (configuration.role === 'text') return configuration.label
  const [field, ...others] = configuration.role === 'card' ? configuration.fields : []
  return field === undefined || others.length > 0 ? texts.title : texts.labels[field]
}

async function answer(message: PageCall): Promise<void> {
  const { call } = message
  try {
    // Handlers are found by type, and take calls of that type only. Only own members count: a type may be "constructor".
    const calls: Role['calls'] = role?.calls ?? {}
    const known = Object.hasOwn(calls, message.type)
    const handler = known ? (calls[message.type] as Handler) : undefined
    if (handler === undefined) throw new CallError(refusal('call_unknown', UNKNOWN))
    const result = await handler(message)
    send({ type: 'result', call, result })
  } catch (error) {
    send({ type: 'failure', call, problem: problemOf(error) })
  }
}

type Handler = (call: PageCall) => Promise<CallResult>

const UNKNOWN = 'This element does not support that call. Is it the right element?'

function style(styles: StyleRules): void {
  const fault = styleFault(styles)
  if (fault !== null) throw new CallError(refusal('configuration_invalid', fault))
  const sheet = styleSheetOf(styles)
  const others = document.adoptedStyleSheets.filter((it) => it !== pageSheet)
  document.adoptedStyleSheets = [...others, sheet]
  pageSheet = sheet
  if (role !== null) sendHeight()
}

function sendHeight(): void {
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height)
  if (height === sentHeight) return
  sentHeight = height
  send({ type: 'resize', height })
}

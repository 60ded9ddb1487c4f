/** Entry of the iframe: connects to the page, builds the fields it asks for, and does what it calls. */
import { BRANDS, type BrandName } from '../card/brands.ts'
import {
  COLOR_SCHEMES,
  FIELD_NAMES,
  type Configuration,
  type FieldsProblem,
  type FrameMessage,
  type PageMessage,
} from '../protocol/messages.ts'
import { keyHashOf } from '../protocol/key-hash.ts'
import { styleFault, type StyleRules } from '../protocol/style-rules.ts'
import { styleSheetOf } from './apply-styles.ts'
import { CardForm } from './card-form.ts'
import { connectPage, originsOf } from './connect-page.ts'
import { SubmissionError, Submissions } from './submission.ts'
import { textsFor } from './texts/texts.ts'
import { checkTokenOptions } from './token-options.ts'

/** How long a submission may take. */
const TIMEOUT_MS = 30_000

const port = await connectPage(originsOf(document))
let started: { readonly form: CardForm; readonly submissions: Submissions } | null = null
let pageSheet: CSSStyleSheet | null = null

port.addEventListener('message', ({ data }: MessageEvent<PageMessage>) => {
  receive(data).catch((error: unknown) => {
    send({ type: 'refused', problem: problemOf(error) })
  })
})
port.start()

function send(message: FrameMessage): void {
  port.postMessage(message)
}

async function receive(message: PageMessage): Promise<void> {
  if (message.type === 'configure') {
    if (started === null) await start(message.configuration)
    return
  }
  if (started === null) return
  const { form, submissions } = started
  switch (message.type) {
    case 'style':
      style(message.styles)
      break
    case 'focus':
      form.focus(message.field)
      break
    case 'clear':
      form.clear()
      submissions.forget()
      break
    case 'tokenize':
    case 'update':
      await call(form, submissions, message)
      break
  }
}

async function start(configuration: Configuration): Promise<void> {
  const { publicKey, fields, locale, brands, colorScheme, styles } = configuration
  const flaw = await configurationFault(configuration)
  if (flaw !== null) throw new SubmissionError(refusal('configuration_invalid', flaw))
  const texts = textsFor(locale)
  const root = document.documentElement
  root.lang = texts.language
  root.dir = texts.direction
  root.style.colorScheme = colorScheme
  document.title = texts.title
  style(styles)
  const form = new CardForm({
    fields,
    brands,
    texts,
    onChange: changeSender(),
    onEvent: (type, field) => send({ type, field }),
    onSubmit: () => send({ type: 'submit' }),
  })
  document.body.replaceChildren(form.element)
  const submissions = new Submissions({
    publicKey,
    fetch: (...parameters) => fetch(...parameters),
    timeoutMs: TIMEOUT_MS,
  })
  started = { form, submissions }
  new ResizeObserver(() => {
    send({ type: 'resize', height: Math.ceil(root.getBoundingClientRect().height) })
  }).observe(root)
  send({ type: 'ready' })
}

/** Returns the flaw of what the page wants, in a sentence, or null. */
async function configurationFault({
  publicKey,
  fields,
  brands,
  locale,
  colorScheme,
  styles,
}: Configuration): Promise<string | null> {
  if (typeof publicKey !== 'string') return 'The public key is missing.'
  // The document, its frame-ancestors and its origins are those of one key, which is in its URL as a hash.
  if ((await keyHashOf(publicKey)) !== location.pathname.split('/').at(-1)) {
    return 'The public key is not the one that the fields were mounted with. Mount them again.'
  }
  const known: readonly unknown[] = FIELD_NAMES
  if (!Array.isArray(fields) || fields.length === 0 || !fields.every((it) => known.includes(it))) {
    return `Fields must be some of ${FIELD_NAMES.join(', ')}.`
  }
  if (new Set(fields).size < fields.length) return 'Each field can be mounted once.'
  const isBrand = (it: unknown): it is BrandName => (BRANDS as readonly unknown[]).includes(it)
  if (brands !== null && !(Array.isArray(brands) && brands.every(isBrand))) {
    return `Brands must be some of ${BRANDS.join(', ')}.`
  }
  if (typeof locale !== 'string') return 'The locale must be a string.'
  if (!(COLOR_SCHEMES as readonly unknown[]).includes(colorScheme)) {
    return `The color scheme must be one of ${COLOR_SCHEMES.join(', ')}.`
  }
  return styleFault(styles)
}

/** Returns a function that sends states that differ from the last one: the page learns nothing from each keystroke. */
function changeSender(): (state: CardForm['state']) => void {
  let last = ''
  return (state) => {
    const text = JSON.stringify(state)
    if (text === last) return
    last = text
    send({ type: 'change', state })
  }
}

async function call(
  form: CardForm,
  submissions: Submissions,
  message: Extract<PageMessage, { type: 'tokenize' | 'update' }>,
): Promise<void> {
  try {
    const checked = checkTokenOptions(message.options)
    if ('errors' in checked) {
      throw new SubmissionError({
        ...refusal('options_invalid', 'A page cannot create a token with these options.'),
        errors: checked.errors,
      })
    }
    const data = form.read()
    if (data === null) throw new SubmissionError(incomplete(form))
    const token =
      message.type === 'tokenize'
        ? await submissions.create(data, checked.options)
        : await submissions.update(message.tokenId, data, checked.options)
    send({ type: 'result', call: message.call, token })
  } catch (error) {
    send({ type: 'failure', call: message.call, problem: problemOf(error) })
  }
}

function incomplete(form: CardForm): FieldsProblem {
  const errors = Object.entries(form.state.fields).flatMap(([name, { error }]) =>
    error === null ? [] : [[name, [error.message]] as const],
  )
  return {
    ...refusal('incomplete', 'Some fields are not filled in correctly; errors names them.'),
    errors: Object.fromEntries(errors),
  }
}

function style(styles: StyleRules): void {
  const flaw = styleFault(styles)
  if (flaw !== null) throw new SubmissionError(refusal('configuration_invalid', flaw))
  const sheet = styleSheetOf(styles)
  document.adoptedStyleSheets = [
    ...document.adoptedStyleSheets.filter((it) => it !== pageSheet),
    sheet,
  ]
  pageSheet = sheet
}

function refusal(code: string, detail: string): FieldsProblem {
  return { title: 'Bad Request', status: 0, code, detail }
}

/** An error of our own code may quote a value, so the page is told of none. */
function problemOf(error: unknown): FieldsProblem {
  if (error instanceof SubmissionError) return error.problem
  return { title: 'Fault', status: 0, code: 'fault', detail: 'The card fields failed.' }
}

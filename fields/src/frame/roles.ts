/** The roles of an iframe: the fields of a card, the hidden coordinator of a group, a text field, or a revealed card. */
import type {
  CallResult,
  Configuration,
  FieldName,
  FieldsProblem,
  FrameMessage,
  PageCall,
  TokenOptions,
} from '../protocol/messages.ts'
import { Coordinator, joinGroup } from './coordinator.ts'
import type { FieldData } from './field-kinds.ts'
import { FieldForm, type Reading } from './field-form.ts'
import { FrameSession } from './frame-session.ts'
import { refusal } from './problems.ts'
import { RevealedCard } from './revealed-card.ts'
import { Submissions } from './submission.ts'
import type { Texts } from './texts/texts.ts'
import { checkTokenOptions, withBrand } from './token-options.ts'
import { CallError, frameClient } from './frame-client.ts'

export interface Role {
  readonly elements: readonly HTMLElement[]
  /** Handlers by type of call. A role refuses all other types. */
  readonly calls: { readonly [Type in PageCall['type']]?: CallHandler<Type> }
  readonly focus: (field: FieldName | null) => void
  readonly clear: () => void
}

type CallHandler<Type> = (call: Extract<PageCall, { type: Type }>) => Promise<CallResult>

/** How long the vault may take to answer, in milliseconds. */
const TIMEOUT_MS = 30_000

type Send = (message: FrameMessage) => void

export function startRole(configuration: Configuration, texts: Texts, send: Send): Role {
  if (configuration.role === 'card') return cardRole(configuration, texts, send)
  if (configuration.role === 'coordinator') return coordinatorRole(configuration)
  if (configuration.role === 'text') return textRole(configuration, texts, send)
  return revealRole(configuration, texts, send)
}

function cardRole(
  { publicKey, fields, brands, group }: Extract<Configuration, { role: 'card' }>,
  texts: Texts,
  send: Send,
): Role {
  const sendState = stateSender(send)
  let tellBrand: ReturnType<typeof joinGroup> | null = null
  const form = new FieldForm({
    fields,
    acceptedBrands: brands,
    texts,
    onChange: (state) => {
      sendState(state)
      // The brands of a co-branded card have security codes of the same length, so the first will do.
      tellBrand?.(state.brands[0] ?? null)
    },
    onEvent: (type, field) => send({ type, field }),
    onSubmit: () => send({ type: 'submit' }),
  })
  if (group !== null) {
    tellBrand = joinGroup(group, fields, form)
    return { elements: [form.element], calls: {}, ...controls(form) }
  }
  const submitter = submitterWith(publicKey)
  const read = async (): Promise<Reading> => readOrRefuse(form)
  return {
    elements: [form.element],
    calls: submitting(submitter, 'card', read),
    ...controls(form, submitter),
  }
}

function coordinatorRole({
  publicKey,
  group,
}: Extract<Configuration, { role: 'coordinator' }>): Role {
  const coordinator = new Coordinator(group)
  const submitter = submitterWith(publicKey)
  const read = async (): Promise<Reading> => {
    const reading = await coordinator.read()
    if (reading === null) throw new CallError(incomplete())
    return reading
  }
  return {
    elements: [],
    calls: {
      ...submitting(submitter, 'card', read),
      join: async ({ fields }) => {
        coordinator.join(fields)
        return null
      },
    },
    focus: () => {},
    clear: () => submitter.forget(),
  }
}

function textRole(
  { publicKey, label, tokenType }: Extract<Configuration, { role: 'text' }>,
  texts: Texts,
  send: Send,
): Role {
  const form = new FieldForm({
    fields: ['text'],
    acceptedBrands: null,
    texts,
    labels: { text: label },
    onChange: stateSender(send),
    onEvent: (type, field) => send({ type, field }),
    onSubmit: () => send({ type: 'submit' }),
  })
  const submitter = submitterWith(publicKey)
  const read = async (): Promise<{ data: string; chosenBrand: null }> => {
    return { data: String(readOrRefuse(form).data['text']), chosenBrand: null }
  }
  return {
    elements: [form.element],
    calls: submitting(submitter, tokenType, read),
    ...controls(form, submitter),
  }
}

function revealRole(
  { publicKey }: Extract<Configuration, { role: 'reveal' }>,
  texts: Texts,
  send: Send,
): Role {
  const client = frameClient(fetchHere, TIMEOUT_MS)
  const session = new FrameSession(client, publicKey)
  const card = new RevealedCard({
    session,
    texts,
    onCopy: () => send({ type: 'copy' }),
  })
  return {
    elements: [card.element],
    calls: {
      'open-session': async () => await session.open(),
      reveal: async ({ tokenId }) => {
        await card.show(tokenId)
        return null
      },
    },
    focus: () => {},
    clear: () => card.clear(),
  }
}

/** Returns the calls that send what `read` returns. `read` throws if a field is invalid. */
function submitting(
  { submissions, session }: Submitter,
  type: string,
  read: () => Promise<Pick<Reading, 'chosenBrand'> & { readonly data: FieldData | string }>,
): Pick<Role['calls'], 'tokenize' | 'open-session' | 'update'> {
  return {
    tokenize: async ({ options }) => {
      const accepted = acceptedOptions(options)
      const { data, chosenBrand } = await read()
      return await submissions.create(type, data, withBrand(accepted, chosenBrand))
    },
    'open-session': async () => {
      // Validate first: an invalid field should not cost a session.
      await read()
      return await session.open()
    },
    update: async ({ tokenId, options }) => {
      const accepted = acceptedOptions(options)
      const { data, chosenBrand } = await read()
      const changed = withBrand(accepted, chosenBrand)
      return await submissions.update(session, tokenId, data, changed)
    },
  }
}

function acceptedOptions(options: TokenOptions): TokenOptions {
  const checked = checkTokenOptions(options)
  if ('options' in checked) return checked.options
  const detail = 'A page cannot create a token with these options.'
  throw new CallError(refusal('options_invalid', detail, checked.errors))
}

function readOrRefuse(form: FieldForm): Reading {
  const reading = form.read()
  if (reading !== null) return reading
  throw new CallError(incomplete(form))
}

/** In a group, each field shows its error in its own iframe, so the coordinator has no `form` and names none. */
function incomplete(form?: FieldForm): FieldsProblem {
  const errors = Object.entries(form?.state.fields ?? {}).flatMap(([name, { error }]) =>
    error === null ? [] : [[name, [error.message]] as const],
  )
  return refusal(
    'incomplete',
    'Some fields are empty or invalid. They now show what is wrong.',
    Object.fromEntries(errors),
  )
}

function controls(form: FieldForm, submitter?: Submitter): Pick<Role, 'focus' | 'clear'> {
  return {
    focus: (field) => form.focus(field),
    clear: () => {
      form.clear()
      submitter?.forget()
    },
  }
}

/** Returns a function that sends a state only if it differs from the last. */
function stateSender(send: Send): (state: FieldForm['state']) => void {
  let last = ''
  return (state) => {
    const text = JSON.stringify(state)
    if (text === last) return
    last = text
    send({ type: 'change', state })
  }
}

interface Submitter {
  readonly submissions: Submissions
  readonly session: FrameSession
  readonly forget: () => void
}

function submitterWith(publicKey: string): Submitter {
  const client = frameClient(fetchHere, TIMEOUT_MS)
  const submissions = new Submissions(client, publicKey)
  const session = new FrameSession(client, publicKey)
  return {
    submissions,
    session,
    forget: () => {
      submissions.forget()
      session.forget()
    },
  }
}

/** The browser's `fetch` works only as a method of the window. */
const fetchHere: typeof fetch = (...parameters) => fetch(...parameters)

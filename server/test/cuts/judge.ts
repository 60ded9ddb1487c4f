/** Judges a request whose commit was cut. */

/** The response its caller got. */
export interface CutReply {
  /** 0 when nothing came. */
  readonly status: number
  readonly retryAfter: string | null
  readonly text: string
  readonly ms: number
}

/** Its traces in the database. */
export interface StoredByCut {
  /** Internal ids of its tokens that readers may see. */
  readonly tokens: readonly string[]
  /** Those that were made, says the audit log. */
  readonly recorded: readonly string[]
  /** Answers that are remembered. */
  readonly answers: number
}

export interface SeenCut {
  readonly wanted: number
  /** Whether the server may have asked to commit when it was cut. */
  readonly mayHaveAsked: boolean
  readonly reply: CutReply
  readonly stored: StoredByCut
  /** The same, when it was asked again with its idempotency key. */
  readonly again: { readonly reply: CutReply; readonly stored: StoredByCut }
}

export const CUT_FAULTS = {
  lost: 'told of as made, and not there',
  half: 'a part of what was asked in one request',
  double: 'there more than once, after it was asked again',
  torn: 'tokens, their audit events and the answer that is remembered do not agree',
  needless: 'said to be not known, though nobody had asked to commit',
  stray: 'an answer that it cannot have, or an answer that is not repeated',
  hung: 'took longer than it may',
  flaw: 'something amiss in the database',
} as const
export type CutFault = keyof typeof CUT_FAULTS

/** Returns what is wrong, in words; an answer may take `answerMsMax`. */
export function judge(
  { wanted, mayHaveAsked, reply, stored, again }: SeenCut,
  answerMsMax: number,
): [CutFault, string][] {
  const found: [CutFault, string][] = []
  for (const { status, ms } of [reply, again.reply]) {
    if (ms > answerMsMax) found.push(['hung', `${status} after ${Math.round(ms)} ms`])
  }
  const made = isDone(reply)
  const unknown = reply.status === 503 && reply.retryAfter !== null
  if (!made && !unknown) found.push(['stray', `${reply.status}, retry ${reply.retryAfter}`])
  if (unknown && !mayHaveAsked) found.push(['needless', '503 before COMMIT'])
  if (made && stored.tokens.length === 0) found.push(['lost', `${reply.status}, and no token`])
  found.push(...flawsOf(stored, wanted))

  if (!isDone(again.reply)) found.push(['stray', `asked again, ${again.reply.status}`])
  else if (made && again.reply.text !== reply.text) found.push(['stray', 'two answers'])
  if (isDone(again.reply) && again.stored.tokens.length === 0) found.push(['lost', 'asked again'])
  for (const [fault, story] of flawsOf(again.stored, wanted)) {
    found.push([fault, `${story}, asked again`])
  }
  return found
}

/** All of it is there, or nothing. */
function flawsOf({ tokens, recorded, answers }: StoredByCut, wanted: number): [CutFault, string][] {
  const found: [CutFault, string][] = []
  const count = tokens.length
  if (count > wanted) found.push(['double', `${count} tokens of ${wanted}`])
  else if (count !== 0 && count !== wanted) found.push(['half', `${count} tokens of ${wanted}`])
  if (tokens.toSorted().join() !== recorded.toSorted().join()) {
    found.push(['torn', `${count} tokens, ${recorded.length} in the audit log`])
  }
  if (answers !== (count === 0 ? 0 : 1)) found.push(['torn', `${count} tokens, ${answers} answers`])
  return found
}

export function isDone({ status }: CutReply): boolean {
  return status >= 200 && status < 300
}

/** Renders the tokens of a request as its answer, and as the answer to a replay of it. */
import type { Transform } from '../base/access.ts'
import type { Json } from '../base/json.ts'
import type { EvaluationContext } from '../expressions/template.ts'
import type { FoundToken } from '../ports/stored.ts'
import type { World } from '../ports/world.ts'
import { keepUntil } from '../request/idempotency.ts'
import type { Answer } from '../request/response.ts'
import type { BuiltBatch, DraftBatch } from './build-tokens.ts'
import { inChunks } from './chunked-work.ts'
import { duplicateViewer, type DuplicateView } from './deduplication.ts'
import type { Draft } from './draft.ts'
import { withoutShortLived } from './sealing.ts'

/** The result of a draft: a new token, or its existing duplicate. */
export interface BuiltToken {
  readonly draft: Draft
  readonly token: FoundToken
  /** The transform for tokens the caller creates here. */
  readonly transform: Transform
  /** Undefined for a new token; null for a duplicate the caller may not read. */
  readonly duplicate: DuplicateView | null | undefined
  /** Whether to render it as readers see it once its security code has expired. */
  readonly shortLivedExpired: boolean
  /** The evaluation context of its expressions. */
  readonly evaluationContext: EvaluationContext
}

export interface TokenRenderer {
  /** Renders the result of one draft. */
  readonly renderBuilt: (built: BuiltToken, index: number) => Json
  /**
   * Combines the rendered drafts into the answer, which is stored for replay in the same commit as the tokens. May modify
   * what an earlier call returned.
   */
  readonly answer: (rendered: readonly Json[]) => Answer
}

export interface RenderedAnswers {
  readonly answer: Answer
  /**
   * The answer to a replay of the request, if it shows less: it outlives a security code by far, so it holds what readers see
   * after the code has expired.
   */
  readonly replayAnswer: Answer | undefined
}

/** `transforms` has what the caller may see of each draft. Synchronous unless there are many. */
export function renderAnswers(
  { clock }: Pick<World, 'clock'>,
  { context, keys, drafts }: DraftBatch,
  { found, duplicates, attempt }: BuiltBatch,
  transforms: readonly Transform[],
  { renderBuilt, answer }: TokenRenderer,
): RenderedAnswers | Promise<RenderedAnswers> {
  const { grants, evaluationContext } = attempt
  const view = duplicateViewer({ context, grants }, keys, attempt)
  const viewLater = duplicateViewer({ context, grants }, keys, { now: Infinity, evaluationContext })
  const rendered = Array<Json>(drafts.length)
  const forReplay: Json[] = []
  let replayShowsLess = false

  const rendering = inChunks(clock, drafts.length, renderNext)
  return rendering === undefined ? answers() : rendering.then(answers)

  function renderNext(index: number): void {
    const token = found[index]!
    const built: BuiltToken = {
      draft: drafts[index]!,
      token,
      transform: transforms[index]!,
      duplicate: duplicates.has(index) ? view(token) : undefined,
      evaluationContext,
      shortLivedExpired: false,
    }
    // One that the caller may not read shows nothing, and must not show when it expires.
    if (built.duplicate !== null) keepUntil(context, token.expiresAt)
    rendered[index] = renderBuilt(built, index)
    if (context.idempotency === null) return
    replayShowsLess ||= token.cvc !== null
    forReplay.push(token.cvc === null ? rendered[index] : renderBuilt(aged(built), index))
  }

  function aged(built: BuiltToken): BuiltToken {
    const { draft, token, duplicate } = built
    return {
      ...built,
      draft: withoutShortLived(draft),
      duplicate: duplicate && viewLater(token),
      shortLivedExpired: true,
    }
  }

  function answers(): RenderedAnswers {
    const replayAnswer = replayShowsLess ? structuredClone(answer(forReplay)) : undefined
    return { answer: answer(rendered), replayAnswer }
  }
}

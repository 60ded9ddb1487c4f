/** Remembers answers for replay. */
import type { ChangeOf } from '../../../ports/change.ts'
import type { Session } from './session.ts'
import { columnsOf, rowsFrom } from './several-rows.ts'
import { packText } from './text.ts'
import type { ChangeStep, UnitOfWork } from './unit-of-work.ts'

export type AnswerOfTenant = ChangeOf<'remember-answer'> & { readonly tenantId: string }

const ANSWER = {
  tenant: 'uuid',
  id: 'text',
  status: 'integer',
  body: 'bytea',
  expires_at: 'bigint',
} as const

export async function rememberAnswer(
  { session, tenantId }: UnitOfWork,
  change: ChangeOf<'remember-answer'>,
): ChangeStep {
  const remembered = await rememberAnswers(session, [{ ...change, tenantId }])
  return remembered ? null : { kind: 'answer-taken' }
}

/** Remembers answers in one statement; returns whether all were new, or replaced answers that had expired. */
export async function rememberAnswers(
  session: Session,
  answers: readonly AnswerOfTenant[],
): Promise<boolean> {
  if (answers.length === 0) return true
  const rows = answers.map(({ tenantId, answer: { id, status, body, expiresAt } }) => {
    return [tenantId, packText(id), status, body, expiresAt]
  })
  const remembered = await session.run(
    `INSERT INTO answers (tenant, id, status, body, expires_at)
     SELECT tenant, id, status, body, expires_at FROM ${rowsFrom(ANSWER, 'rows')}
     ON CONFLICT (tenant, id) DO UPDATE
     SET status = excluded.status, body = excluded.body, expires_at = excluded.expires_at
     WHERE answers.expires_at <= $6`,
    [...columnsOf(ANSWER, rows), Math.min(...answers.map((it) => it.now))],
  )
  return remembered === rows.length
}

/** Documents that each lack something the service answers, as if a response were not described: the check must notice. */
import type { JsonObject } from '../../src/base/json.ts'
import { operationsOf, type ApiDocument, type ApiResponse } from './document.ts'

export type Weakening = (document: ApiDocument) => ApiDocument

export const WEAKENINGS: Readonly<Record<string, Weakening>> = {
  member: changed(({ components }) => {
    delete (components.schemas['Token']!['properties'] as JsonObject)['_extras']
  }),
  type: changed(({ components }) => {
    const properties = components.schemas['Token']!['properties'] as JsonObject
    properties['containers'] = { type: 'string' }
  }),
  status: changed((document) => {
    for (const { responses } of operationsOf(document)) delete responses['404']
  }),
  header: changed((document) => {
    for (const it of responsesOf(document)) delete it.headers['Location']
  }),
  code: changed((document) => {
    for (const it of responsesOf(document)) {
      const at = it['x-codes']?.indexOf('permission_missing') ?? -1
      if (at >= 0) it['x-codes']!.splice(at, 1)
    }
  }),
  'content type': changed((document) => {
    for (const { content } of responsesOf(document)) delete content?.['application/json']
  }),
}

function responsesOf(document: ApiDocument): ApiResponse[] {
  return operationsOf(document).flatMap(({ responses }) =>
    Object.values(responses).filter((it) => it.$ref === undefined),
  )
}

function changed(change: (document: ApiDocument) => void): Weakening {
  return (document) => {
    const copy = structuredClone(document)
    change(copy)
    return copy
  }
}

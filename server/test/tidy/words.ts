/**
 * The words that the field has instead of ours: one row for each private word that the source once had.
 *
 * A row holds for identifiers, not for comments or strings: stored formats and names on the wire keep their words.
 */
import { findings, type SourceFile } from './source.ts'

export interface RetiredWord {
  /** Matches an identifier. */
  readonly was: RegExp
  readonly instead: string
  /** An identifier it matches. */
  readonly example: string
}

export const RETIRED_WORDS: readonly RetiredWord[] = [
  row(
    /\b(?:record(?:Entry|Entries|Reader|Writer|Seal)|sealRecord|appendRecord|recordOf|RecordEntry)\b/g,
    'the audit log and its events',
    'sealRecord',
  ),
  row(/\b(?:RecordHead|recordHead)\b/g, 'chain tip, key id or header section', 'recordHead'),
  row(/\b(?:Place|placeOf|searchedPlace)\b/g, 'SealContext, endpoint, location or slot', 'placeOf'),
  row(
    /\b(?:[dD]oor(?:keeper)?)\b/g,
    'authentication and admission, or egress gateway',
    'Doorkeeper',
  ),
  row(
    /\b(?:[pP]assage\w*|isPassage|passOn)\b/g,
    'streaming endpoint, forwardRequest',
    'PassageReply',
  ),
  row(/\b(?:lent|lentKeys?|LentKeys?|[lL]oan|[bB]orrower)\b/g, 'ephemeral key', 'LentKeys'),
  row(
    /\b(?:Asker|askerOf|Giver|giverOf|[iI]nsider\w*)\b/g,
    'initiator, grantor, in-process caller',
    'Insider',
  ),
  row(/\b(?:Caller|callerOf|_caller)\b/g, 'RequestContext', 'Caller'),
  row(
    /\b(?:reachOf|\w+Reach)\b/g,
    'visibleContainers, allowedDestinations, or a Pick in the signature',
    'reachOf',
  ),
  row(
    /\b(?:Shares|FairTurns|LookupTurns|Turns|[pP]ace|ConnectionPace)\b/g,
    'quota, fair queue, read throttle',
    'FairTurns',
  ),
  row(/\b(?:Lane|lanes|laneOf)\b/g, 'pooled connection, delivery queue', 'lanes'),
  row(/\b(?:Unit|newUnit|Units)\b/g, 'staging batch, unit of work', 'newUnit'),
  row(/\b(?:[tT]win\w*|\w+Twins?)\b/g, 'duplicate', 'findTwin'),
  row(/\b(?:serials|serialOf|\w+Serials?)\b/g, 'internal id', 'serialOf'),
  row(/\b(?:[hH]oles?|findHoles|holeIn)\b/g, 'replacement span', 'findHoles'),
  row(
    /\b(?:[mM]ention(?:s|ed|Reader|sOf)?|grantMentioned|findMentioned)\b/g,
    'token reference',
    'mentionsOf',
  ),
  row(
    /\b(?:ReactorTerms|ProxyTerms|RunTerms|JobTerms)\b/g,
    'sealed configuration, state',
    'ReactorTerms',
  ),
  row(/\b(?:planTokens|TokenPlan)\b/g, 'tokenize plan', 'planTokens'),
  row(/\b(?:Means|\w+Means|[aA]llowance)\b/g, 'evaluation context, cost budget', 'Allowance'),
  row(/\b(?:makeOnce|makeAll|makeNext)\b/g, 'attempt; build, render, commit', 'makeOnce'),
  row(
    /\b(?:refuseOutright|recordRest|recordRefused|mayNotBeTwin)\b/g,
    'checkEndpointAccess, flushDecisions',
    'recordRest',
  ),
  row(/\b(?:[wW]ishes|parseWishes|[wW]hereto)\b/g, 'proxy options, target', 'parseWishes'),
  row(/\b(?:[sS]helf|[sS]helves|MemoryShelf)\b/g, 'table', 'Shelf'),
  row(/\b(?:[cC]rowd\w*)\b/g, 'connection batch', 'crowd'),
  row(/\b(?:rehearse|Rehearsed|disown\w*)\b/g, 'dry run, abandon', 'rehearse'),
  row(
    /\b(?:whenQuiet|underWay|LateWatch|HangUp)\b/g,
    'idle callback, in-flight, commit watchdog, client abort',
    'whenQuiet',
  ),
  row(/\b(?:givenUp|gaveUp)\b/g, 'dead letter', 'givenUp'),
  row(/\b(?:ReactorJob)\b/g, 'SandboxRun', 'ReactorJob'),
  row(/\b(?:Told\w*)\b/g, 'outcome, or what it holds', 'Told'),
  row(/\b(?:atOnce|atOnceIn)\b/g, 'read transaction, run to completion, concurrency', 'atOnce'),
  row(/\b(?:StretchWatch|\w+Odd(?:Braces|Expression))\b/g, 'inspect, non-ASCII', 'StretchWatch'),
  row(/\b(?:mayGoOn|movedBy|makerOf)\b/g, 'the verb and its object', 'mayGoOn'),
]

function row(was: RegExp, instead: string, example: string): RetiredWord {
  return { was, instead, example }
}

/** Says of each identifier that is a retired word what to call it instead. */
export function retiredWords(file: SourceFile): string[] {
  if (file.path === 'test/tidy/words.ts') return []
  return RETIRED_WORDS.flatMap(({ was, instead }) => findings(file, 'code', was, `say ${instead}`))
}

/** Returns the names of the types that a file declares at the top level. */
export function declarationsOf(file: SourceFile): string[] {
  const pattern = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm
  return Array.from(file.code.matchAll(pattern), ([, name]) => name!)
}

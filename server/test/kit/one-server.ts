/** Why a test is about one process: nothing else keeps a whole vault from being two servers when the run is about two. */
export const ONE_SERVER = {
  'what is under way':
    'a twin in the same process is refused before its commit; one in another process at it, which has its own tests',
  'what is forgotten at once':
    'the server that deletes a tenant forgets its keys at once, another one with its next sweep',
  'a data key is replaced': 'by the only server that there is: decision 0037',
} as const

export type OneServerReason = keyof typeof ONE_SERVER

import type { GuestUser } from '../ports/reactor-runner.ts'

/** Says, in a clause, which user reactors run as. */
export function describeGuestUser(user: GuestUser): string {
  return DESCRIPTIONS[user]
}

const DESCRIPTIONS: Readonly<Record<GuestUser, string>> = {
  own: 'each reactor runs as a user of its own',
  service: "reactors run as the service's user",
  root: 'reactors run as root',
}

export const AS_ROOT_ADVICE =
  'Run the service as an ordinary user, or give it the capabilities SETUID and SETGID, and in /tmp or /var/tmp 200 MB for a copy of the files that reactors need.'

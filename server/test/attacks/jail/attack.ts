/** An action that code behind the walls must not be able to do. */
export interface Attack {
  readonly name: string
  /**
   * The body of an async function of `args`, with `require`; returns a truthy value on success. Code that keeps its
   * caller waiting forever is an attack too.
   */
  readonly code: string
  /** Where success is seen in place of what it returns. */
  readonly seen?: 'packets' | 'victim'
  /** The body of a reactor of another tenant that runs afterwards: something true when it notices. */
  readonly next?: string
  /** Only root can do it, walls or not. */
  readonly byRoot?: true
  /** It changes or uses up so much of its process that others would not show anything after it. */
  readonly apart?: true
  /** It counts as done when it takes longer than it is given. */
  readonly endless?: true
}

/** Facts about their surroundings that attacks get, by the names of `args`. */
export interface AttackTargets {
  /** A process beside the service, of the same user. */
  readonly victim: number
  /** A file that only the service may read, with the canary in it. */
  readonly secretFile: string
  /** A folder that the service may write to. */
  readonly folder: string
  /** Servers that answer with the canary, on every address of this machine. */
  readonly port: number
  readonly udpPort: number
  readonly unixSocket: string
  readonly abstractSocket: string
  readonly canary: string
}

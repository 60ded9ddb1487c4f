/** What the launcher is told, as JSON in its only argument. */
export interface LaunchPlan {
  /** The process that asks: if it is gone by the time the walls stand, there is nobody to run for. */
  readonly parent: number
  readonly arguments: readonly string[]
  readonly variables: readonly string[]
  /** Files and folders that the guest may read besides the runtime itself. */
  readonly readable: readonly string[]
  /** Become a user that nobody else is; only root can. */
  readonly ownUser: boolean
  /**
   * The files that the runtime is made of, for a launcher that begins in namespaces of its own and has no /proc to
   * look them up in; null for one that begins among everybody else.
   */
  readonly runtime: readonly string[] | null
  readonly dataBytesMax: number
}

/** The host name in namespaces of a guest's own. */
export const GUEST_HOST = 'guest'

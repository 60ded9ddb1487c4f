/** The launcher's only argument, as JSON. */
export interface LaunchPlan {
  /** Parent process id. If the parent has ended by the time the walls stand, the launcher exits. */
  readonly parent: number
  /** The argv[0] of the guest, which its code can see. */
  readonly name: string
  readonly arguments: readonly string[]
  readonly variables: readonly string[]
  /** Files and folders that the guest may read, in addition to the runtime. */
  readonly readable: readonly string[]
  /** Change to a user that no other process has; only root can. */
  readonly ownUser: boolean
  /**
   * Files of the Node runtime, for a launcher in namespaces of its own, which has no /proc to look them up in; null for
   * one that shares the system's namespaces.
   */
  readonly runtime: readonly string[] | null
  readonly dataBytesMax: number
}

/** Host name inside the guest's namespaces. */
export const GUEST_HOST = 'guest'

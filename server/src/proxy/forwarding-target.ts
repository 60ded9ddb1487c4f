import { isListed } from '../access/destinations.ts'
import { hostOf } from '../base/absolute-url.ts'
import type { Principal } from '../base/access.ts'
import { ServiceError } from '../base/service-error.ts'
import { EgressFailure, EgressRefusal, senderOf, type Route, type Sender } from '../ports/egress.ts'
import type { World } from '../ports/world.ts'
import type { RequestContext } from '../request/context.ts'
import { refusalOfEgress } from '../request/egress-refusals.ts'
import { authorizeProxyInvocation, isAnonymous } from './configured/authorize-proxy-invocation.ts'
import { markDryRun } from './dry-run.ts'
import { resolveTarget, type ProxyTarget } from './proxy-target.ts'
import type { ProxyOptions } from './reserved-headers.ts'

type TargetWorld = Pick<World, 'keyring' | 'store' | 'egress'>

/** Where one request is forwarded to, and whether it may be. */
export class ForwardingTarget {
  readonly #world: TargetWorld
  readonly #context: RequestContext
  readonly #options: ProxyOptions
  readonly #resolve: () => Promise<ProxyTarget>
  readonly #resolved: ProxyTarget
  /** Whether the caller has no API key: it may use the proxy, and nothing else. */
  readonly anonymous: boolean

  /** Throws what resolveTarget() throws. */
  static async resolve(
    world: TargetWorld,
    context: RequestContext,
    options: ProxyOptions,
    targetBelowPath: string,
  ): Promise<ForwardingTarget> {
    const resolve = () => resolveTarget(world, context, options, targetBelowPath)
    return new ForwardingTarget(world, context, options, resolve, await resolve())
  }

  private constructor(
    world: TargetWorld,
    context: RequestContext,
    options: ProxyOptions,
    resolve: () => Promise<ProxyTarget>,
    resolved: ProxyTarget,
  ) {
    this.#world = world
    this.#context = context
    this.#options = options
    this.#resolve = resolve
    this.#resolved = resolved
    this.anonymous = resolved.proxy !== null && isAnonymous(context, resolved.proxy)
  }

  /** The URL as the caller may see it. */
  get shown(): ProxyTarget['shown'] {
    return this.#resolved.shown
  }

  /** The host, for the audit log. */
  get destination(): string {
    return hostOf(this.#resolved.url)
  }

  /**
   * Asks the egress gateway whether anything may be sent there, and authorizes the caller to do so; records both.
   *
   * Throws `permission_missing` and what refusalOfEgress() returns.
   */
  async admit(): Promise<Route> {
    const route = await this.#vet()
    this.#authorize()
    return route
  }

  /** Throws `rights_changed` if the configured proxy points elsewhere by now. */
  async requireUnmoved(): Promise<void> {
    if (this.#resolved.proxy === null) return
    const { url } = await this.#resolve()
    if (url.href !== this.#resolved.url.href) throw new ServiceError('rights_changed')
  }

  /** Throws if a request in progress may not go on for `principal`, who is the caller at present. */
  async requireAllowed({ destinations }: Pick<Principal, 'destinations'>): Promise<void> {
    if (!isListed(this.#resolved.url, destinations)) {
      throw refusalOfEgress(new EgressRefusal('unlisted'))
    }
    await this.requireUnmoved()
  }

  #authorize(): void {
    authorizeProxyInvocation(this.#context, this.destination, this.#resolved.proxy)
    if (this.#options.dryRun) markDryRun(this.#context, this.#context.decisions.length - 1)
  }

  /**
   * If the name has no address, the authorization is recorded before the error, because a DNS look-up has left the service.
   */
  async #vet(): Promise<Route> {
    const { destinations, decisions } = this.#context
    try {
      return await this.#world.egress.vet(this.#sender, this.#resolved.url, destinations)
    } catch (error) {
      if (error instanceof EgressRefusal) {
        const { destination } = this
        const refused = { containers: [], allowed: false, by: [], destination } as const
        decisions.push({ permission: 'proxy:invoke', ...refused })
      } else if (error instanceof EgressFailure) this.#authorize()
      throw refusalOfEgress(error)
    }
  }

  /** Keyless callers of a proxy are an owner of their own: their number is unbounded, and callers with a key must not queue after them. */
  get #sender(): Sender {
    const { tenantId } = this.#context
    return this.anonymous ? senderOf(tenantId, this.#resolved.proxy!.id) : senderOf(tenantId)
  }
}

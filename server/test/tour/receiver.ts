import { Webhook } from 'standardwebhooks'

/** A receiver of callbacks: knows the secret, verifies, and keeps the genuine ones. */
export class TourReceiver {
  #webhook: Webhook | null = null
  readonly #received = Promise.withResolvers<unknown>()

  learn(secret: string): void {
    this.#webhook = new Webhook(secret)
  }

  /** Returns the status to answer with: a forger learns nothing, and a genuine sender can retry. */
  receive(body: string, headers: Record<string, string>): 204 | 400 {
    try {
      if (this.#webhook === null) throw new Error('The secret is not known yet')
      this.#received.resolve(this.#webhook.verify(body, headers))
      return 204
    } catch {
      return 400
    }
  }

  /** Resolves with the first callback received. */
  async received(): Promise<unknown> {
    return await this.#received.promise
  }
}

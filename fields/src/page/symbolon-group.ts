/**
 * `<symbolon-group public-key="key_...">`: fields of one card in separate iframes, each a `<symbolon-field name="number">`
 * anywhere in the group. A hidden iframe reads and submits them. What is typed passes between iframes, never through the page.
 */
import type { CardFieldName, RoleConfiguration } from '../protocol/messages.ts'
import { brandsIn } from './card-attributes.ts'
import { misuse } from './fields-error.ts'
import { FrameElement } from './frame-element.ts'
import { SubmittingElement } from './submitting-element.ts'

export class SymbolonGroup extends SubmittingElement {
  /** Identifies the group's iframes to each other. */
  readonly #id = crypto.randomUUID()

  override clear(): void {
    super.clear()
    for (const it of this.#fields()) it.clear()
  }

  override focus(field?: CardFieldName | FocusOptions): void {
    const fields = this.#fields()
    const named = fields.find((it) => it.getAttribute('name') === field)
    // A field in which nothing was typed has sent no state yet.
    const incomplete = fields.find((it) => it.state?.complete !== true)
    ;(named ?? incomplete ?? fields[0])?.focus()
  }

  /** The id that the group's fields pass to their iframes. */
  get groupId(): string {
    return this.#id
  }

  protected override get hiddenFrame(): boolean {
    return true
  }

  protected override configure(): RoleConfiguration {
    if (this.getRootNode() !== document) {
      throw misuse(
        'shadow_root',
        'A group does not work in a shadow tree. Use <symbolon-card> there.',
      )
    }
    return { role: 'coordinator', group: this.#id }
  }

  #fields(): SymbolonField[] {
    return [...this.querySelectorAll<SymbolonField>('symbolon-field')]
  }

  /** Connects the hidden iframe to the fields as they are now. */
  protected override async prepare(): Promise<void> {
    const fields = this.#fields()
    if (fields.length === 0) {
      throw misuse('fields_missing', 'The group has no <symbolon-field>.')
    }
    await Promise.all(fields.map((it) => it.ready))
    const names = fields.map((it) => it.getAttribute('name') as CardFieldName)
    await this.call({ type: 'join', fields: names })
  }
}

/** `<symbolon-field name="number">`, within a `<symbolon-group>`. */
export class SymbolonField extends FrameElement {
  protected override get publicKey(): string {
    return this.#group().getAttribute('public-key') ?? ''
  }

  protected override configure(): RoleConfiguration {
    const group = this.#group()
    const fields = [(this.getAttribute('name') ?? '') as CardFieldName]
    return { role: 'card', fields, brands: brandsIn(group), group: group.groupId }
  }

  #group(): SymbolonGroup {
    const group = this.closest<SymbolonGroup>('symbolon-group')
    if (group === null) throw misuse('group_missing', 'Put <symbolon-field> in a <symbolon-group>.')
    return group
  }
}

/** Applies a page's style rules, only through CSSOM, so that none of it is ever parsed as a selector or a style sheet. */
import { STYLE_PARTS, type StylePart, type StyleRules } from '../protocol/style-rules.ts'

/** Returns a style sheet to adopt. CSSOM drops values that the browser does not accept for a property. */
export function styleSheetOf(rules: StyleRules): CSSStyleSheet {
  const sheet = new CSSStyleSheet()
  for (const [part, properties] of Object.entries(rules)) {
    const at = sheet.insertRule(`${STYLE_PARTS[part as StylePart]} {}`, sheet.cssRules.length)
    const { style } = sheet.cssRules[at] as CSSStyleRule
    for (const [property, value] of Object.entries(properties)) style.setProperty(property, value)
  }
  return sheet
}

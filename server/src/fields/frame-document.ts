/**
 * The document of an iframe with card fields. It is made for one application: only pages of its allowed origins may embed it.
 *
 * Its Content-Security-Policy allows this service's own script and style sheet and nothing else: nothing inline, no `eval`, no
 * sink of Trusted Types, and no request but to this service.
 */
import { writtenOrigin } from '../base/origin.ts'
import type { Answer } from '../request/response.ts'

/** `allowedOrigins` are those of the application; null and none mean that no page may embed it. */
export function frameDocument(allowedOrigins: readonly string[] | null): Answer {
  // What the database holds goes into a header, so it is parsed again.
  const origins = (allowedOrigins ?? []).flatMap((it) => writtenOrigin(it) ?? [])
  return {
    status: origins.length === 0 ? 404 : 200,
    text: documentOf(origins),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyFor(origins),
      'x-content-type-options': 'nosniff',
      // The list of origins may change at any time.
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      // A page that isolates itself (COEP) may embed only documents that do so, too, and say that they may be embedded.
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'cross-origin',
      'permissions-policy': PERMISSIONS,
    },
  }
}

function policyFor(origins: readonly string[]): string {
  const ancestors = origins.length === 0 ? "'none'" : origins.join(' ')
  return `${POLICY}; frame-ancestors ${ancestors}`
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const PERMISSIONS = ['camera', 'display-capture', 'geolocation', 'microphone', 'payment', 'usb']
  .map((it) => `${it}=()`)
  .join(', ')

/** The script finds the origins in the document, and the handshake checks them again. */
function documentOf(origins: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="allowed-origins" content="${origins.join(' ')}">
<title>Card details</title>
<link rel="stylesheet" href="../frame.css">
<script type="module" src="../frame.js"></script>
<body></body>
</html>
`
}

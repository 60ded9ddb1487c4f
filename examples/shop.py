"""A shop in Python: serves a page with card fields, and charges the token through the vault's proxy.

It never sees a card number. It needs Python 3.9 and nothing else:

    KEY=key_local_mgt_... python3 examples/shop.py

VAULT_URL (http://localhost:4400), PAYMENT_URL (https://localhost:4443) and PORT (8080) are optional.
"""

import json
import os
import re
import secrets
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VAULT_URL = os.environ.get("VAULT_URL", "http://localhost:4400")
PAYMENT_URL = os.environ.get("PAYMENT_URL", "https://localhost:4443")
PORT = int(os.environ.get("PORT", "8080"))
PAGE = Path(__file__).parent / "html" / "index.html"


def call_vault(key, path, body, headers=None):
    """Returns the status and the body of the vault's response."""
    request = urllib.request.Request(
        VAULT_URL + path,
        data=json.dumps(body).encode(),
        headers={"BT-API-KEY": key, "Content-Type": "application/json", **(headers or {})},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def create_key(application):
    status, body = call_vault(os.environ["KEY"], "/applications", application)
    if status != 201:
        sys.exit(f"The vault refused to create a key: {body}")
    return json.loads(body)["key"]


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/":
            return self.send_error(404)
        nonce = secrets.token_urlsafe(16)
        page = PAGE.read_text(encoding="utf-8")
        for name, value in {"NONCE": nonce, "VAULT": VAULT_URL, "PUBLIC_KEY": PUBLIC_KEY}.items():
            page = page.replace(f"%{name}%", value)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; frame-src {VAULT_URL}; connect-src 'self'; "
            "img-src data:; require-trusted-types-for 'script'; base-uri 'none'; form-action 'none'"
        )
        self.send(200, page, "text/html; charset=utf-8", {"Content-Security-Policy": policy})

    def do_POST(self):
        if self.path != "/pay":
            return self.send_error(404)
        token = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["token"]
        # It goes into an expression, so it must be an id and nothing else.
        if not re.fullmatch(r"[0-9a-f-]{36}", token):
            return self.send_json(400, {"message": "No such card."})
        status, _ = self.charge(token)
        if status < 300:
            self.send_json(200, {"message": "Paid. Thank you."})
        else:
            # Not for the page: a provider's error may repeat the number.
            print(f"Not paid: {status}", file=sys.stderr)
            self.send_json(502, {"message": "Not paid."})

    def charge(self, token):
        """The vault replaces the expressions by the card, on its way to the payment provider."""
        card = {
            "amount": 3000,
            "currency": "EUR",
            "number": f"{{{{ {token} | json: '$.number' }}}}",
            "expiry": f"{{{{ {token} | json: '$.expiration_month' }}}}/{{{{ {token} | json: '$.expiration_year' }}}}",
            "code": f"{{{{ {token} | json: '$.cvc' }}}}",
        }
        return call_vault(CHARGE_KEY, "/proxy", card, {"BT-PROXY-URL": f"{PAYMENT_URL}/charges"})

    def send_json(self, status, body):
        self.send(status, json.dumps(body), "application/json", {})

    def send(self, status, text, content_type, headers):
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


if "KEY" not in os.environ:
    sys.exit("Set KEY to the management key that the vault printed.")

server = ThreadingHTTPServer(("localhost", PORT), Shop)
origin = f"http://localhost:{server.server_port}"

# The two keys of the shop. A real shop has them from its configuration, and no management key.
PUBLIC_KEY = create_key(
    {
        "name": "Shop page",
        "type": "public",
        "permissions": ["token:create"],
        "allowed_origins": [origin],
    }
)
CHARGE_KEY = create_key({"name": "Shop server", "type": "private", "permissions": ["token:use"]})

print(f"The shop is at {origin}", flush=True)
server.serve_forever()

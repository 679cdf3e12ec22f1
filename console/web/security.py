"""What every answer of the console carries, and what no request may be: pure ASGI, around all routes.

Source: Content Security Policy Level 3; RFC 6265 (cookies); Fetch (same origin of a POST).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.limits import QUERY_CHARACTERS

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
"""A report is one page with its style in it, written from what peers have sent: it gets no script and no origin."""
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Guard:
    """`hosts`: names that the console may be called by; none: any. A page of another site that gets its own name to
    point here is kept out by it where there is no login."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts and (urlsplit(f"//{host}").hostname or "") not in self._hosts:
            return PlainTextResponse("this console is not called by that name\n", 421)
        if len(scope.get("query_string", b"")) > QUERY_CHARACTERS:
            return PlainTextResponse(f"more than {QUERY_CHARACTERS} characters of parameters\n", 414)
        origin = headers.get("origin")
        if scope["method"] not in ("GET", "HEAD") and (origin is None or urlsplit(origin).netloc != host):
            return PlainTextResponse("only the console's own pages may send this\n", 403)
        return None

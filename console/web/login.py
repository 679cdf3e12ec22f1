"""`/login` and `/logout`, and who may look: everyone where there are no users, else who has a session."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from console.limits import BODY_BYTES, SESSION_S
from console.web.render import Pages
from console.web.sessions import Busy, Sessions
from native_backend.clock import Clock

_COOKIE: Final = "realmgate-console"
_REFUSED: Final = "The name or the password is wrong, or this user may not look, or there were too many attempts."
_BUSY: Final = "Too many logins of your address wait, or have failed. Try again in some seconds."


class Login:
    """`sessions` None: there is no login."""

    def __init__(self, sessions: Sessions | None, pages: Pages, secure: bool, clock: Clock) -> None:
        self._sessions, self._pages, self._secure, self._clock = sessions, pages, secure, clock

    @property
    def is_needed(self) -> bool:
        return self._sessions is not None

    def user(self, request: Request) -> str:
        """Empty: there is no login, or no user is logged in."""
        return (self._sessions.user(self.session(request)) or "") if self._sessions is not None else ""

    def session(self, request: Request) -> str:
        """The word that the session is known by."""
        return request.cookies.get(self._cookie, "")

    def is_in(self, request: Request) -> bool:
        return self._sessions is None or self._sessions.user(self.session(request)) is not None

    def refusal(self, request: Request) -> Response | None:
        """Of a page: where one logs in; it leads back."""
        if self.is_in(request):
            return None
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(target, safe='')}", 303)

    async def page(self, request: Request) -> Response:
        if self._sessions is None:
            return RedirectResponse("/", 303)
        if request.method != "POST":
            return self._form(next_page(request.query_params.get("next", "")), "", 200)
        body = await body_of(request)
        if body is None:
            return PlainTextResponse(f"more than {BODY_BYTES} octets\n", 413)
        given = dict(parse_qsl(body.decode("utf-8", "replace")))
        following = next_page(given.get("next", ""))
        address = request.client.host if request.client is not None else ""
        try:
            token = await self._sessions.log_in(given.get("user", ""), given.get("password", ""), address)
        except Busy:
            return self._form(following, _BUSY, 503)
        if token is None:
            return self._form(following, _REFUSED, 403)
        answer = RedirectResponse(following, 303)
        answer.set_cookie(
            self._cookie, token, max_age=int(SESSION_S), httponly=True, samesite="strict", secure=self._secure, path="/"
        )
        return answer

    def _form(self, following: str, problem: str, status: int) -> Response:
        document = {"at_us": self._clock.epoch_us(), "title": "Log in", "next": following, "problem": problem}
        return HTMLResponse(self._pages.alone("login.html", document), status)

    async def out(self, request: Request) -> Response:
        if self._sessions is not None:
            self._sessions.log_out(self.session(request))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(self._cookie, path="/")
        return answer

    @property
    def _cookie(self) -> str:
        """A browser takes the name with `__Host-` over TLS only, and then from no other host."""
        return f"__Host-{_COOKIE}" if self._secure else _COOKIE


def next_page(written: str) -> str:
    """A page of this console; never another site."""
    parts = urlsplit(written)
    is_ours = written.startswith("/") and not written.startswith(("//", "/\\")) and not parts.netloc
    return written if is_ours and written.isprintable() and "\\" not in written else "/"


async def body_of(request: Request) -> bytes | None:
    """None: it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES:
            return None
    return bytes(body)

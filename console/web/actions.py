"""`/act`: what a user asks to have changed. There is this address only where the console was started with actions.

A GET says what would happen, with the counts of a dry run, and changes nothing. A POST does it: by a session, from a
page of this console (`security.Guard`), with the token that the page had for exactly this action, the name typed, a
reason.
The command asks the grants for the user, and is recorded with both; a refused one is, too.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from console.facts.actions import Target, command_of, reason_of, shown, target_of
from console.limits import ACT_TIMEOUT_S, REASON
from console.poll.commands import Commands
from console.poll.fetch import NoAnswer
from console.web.login import Login, body_of
from gateway.verdict.answers import text

log = logging.getLogger("realmgate.console")
Show = Callable[[Mapping[str, Any], str], str]
"""A document of an action as a page, for a user."""
_NO_ACTION: Final = "there is no such action\n"


class Actions:
    """Of one console that has a login and a configuration."""

    def __init__(self, commands: Commands, login: Login, gateways: Collection[str], show: Show) -> None:
        self._commands, self._login, self._gateways, self._show = commands, login, gateways, show
        self._secret = secrets.token_bytes(32)
        self._under_way: set[asyncio.Task[bytes]] = set()

    async def page(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._act(request)
        if (refused := self._login.refusal(request)) is not None:
            return refused
        target = self._target(request.query_params)
        if target is None:
            return PlainTextResponse(_NO_ACTION, 404)
        wanted = [name for name in target.missing if name == target.kind.asks]
        if target.missing and not wanted:
            return PlainTextResponse(f"missing: {', '.join(target.missing)}\n", 400)
        dry_run, problem = ("", "") if wanted else await self._dry_run(target, self._login.user(request))
        document = {**_document(target), "asks": bool(wanted), "dry_run": dry_run, "problem": problem, "done": False}
        document["token"] = self._token(request, target)
        return self._answer(document, request, 200)

    def _target(self, form: Mapping[str, str]) -> Target | None:
        """None: there is no such action, or it would ask another address than a gateway of this console."""
        target = target_of(form)
        is_ours = target is None or "gateway" not in target.kind.fields or target["gateway"] in self._gateways
        return target if is_ours else None

    async def _dry_run(self, target: Target, user: str) -> tuple[str, str]:
        """What the command would do, or why it would not. Nothing where it cannot say."""
        if not target.kind.has_dry_run:
            return "", ""
        words, operands = command_of(target, dry_run=True)
        try:
            printed = await self._commands.run(*words, f"--as={user}", operands=operands)
        except NoAnswer as error:
            return "", str(error)
        return _lines(printed), ""

    async def _act(self, request: Request) -> Response:
        if not self._login.is_in(request):
            return PlainTextResponse("log in first: /login\n", 401)
        body = await body_of(request)
        if body is None:
            return PlainTextResponse("the form is too long\n", 413)
        form = dict(parse_qsl(body.decode("utf-8", "replace")))
        target, user = self._target(form), self._login.user(request)
        if target is None or target.missing:
            return PlainTextResponse(_NO_ACTION, 404)
        if not hmac.compare_digest(self._token(request, target).encode(), form.get("token", "").encode()):
            log.warning("%a asked for %s with a wrong token: nothing was done", user, target.do)
            return PlainTextResponse("the page is too old, or not this console's: load it again\n", 403)
        why = form.get("why", "").strip()
        problem = "" if why else "A reason is missing."
        if form.get("name", "").strip() != target.typed:
            problem = f"The name that was typed is not {text(target.typed)}."
        if problem:
            document = {**_document(target), "asks": False, "dry_run": "", "problem": f"{problem} Nothing was done."}
            document |= {"done": False, "token": form["token"], "why": why[:REASON]}
            return self._answer(document, request, 400)
        return await self._carried_out(request, target, user, why)

    async def _carried_out(self, request: Request, target: Target, user: str, why: str) -> Response:
        words, operands = command_of(target)
        log.info("%a: %s, because %a", user, shown(target), why[:REASON])
        command = self._commands.run(
            *words, f"--as={user}", reason_of(target, why), operands=operands, timeout_s=ACT_TIMEOUT_S
        )
        task = asyncio.create_task(command)  # goes on when the browser goes
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        document = {**_document(target), "asks": False, "dry_run": "", "problem": "", "token": "", "done": True}
        try:
            document["said"] = _lines(await asyncio.shield(task))
        except NoAnswer as error:
            log.warning("%a: %s: %s", user, shown(target), error)
            return self._answer({**document, "done": False, "problem": str(error)}, request, 409)
        return self._answer(document, request, 200)

    def _token(self, request: Request, target: Target) -> str:
        """For this session and exactly this action."""
        signed = orjson.dumps([self._login.session(request), target.do, target.values])
        return hmac.new(self._secret, signed, sha256).hexdigest()

    def _answer(self, document: Mapping[str, Any], request: Request, status: int) -> Response:
        return HTMLResponse(self._show(document, self._login.user(request)), status)


def _document(target: Target) -> dict[str, Any]:
    kind = target.kind
    return {
        "action": target.do, "action_title": kind.title, "about": kind.about, "right": kind.right,
        "fields": dict(target.values), "typed_name": kind.fields[0], "typed": target.typed, "said": "", "why": "",
        "asks_name": kind.asks, "asks_about": kind.asks_about, "command": shown(target),
    }  # fmt: skip


def _lines(printed: bytes) -> str:
    return "\n".join(text(line) or "" for line in printed.decode("utf-8", "replace").splitlines()[:100])

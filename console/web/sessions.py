"""Who has logged in. A session is a random word in a cookie, kept here for `SESSION_S`; it ends when its user leaves
the file of users, or loses the group that lets in.

Passwords are checked by the gateway's own code (`gateway.auth`), in a thread: it takes milliseconds by design. Logins
take turns as at the gateway, one of each address: an address that guesses holds no other one up. Seconds of the
monotonic clock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from console.limits import LOGIN_FAILURES, LOGINS_WAITING, SESSION_S, SESSIONS
from gateway.auth.login_queue import Attempt, LoginQueue, Timer
from gateway.auth.login_throttle import LoginThrottle, network
from gateway.auth.passwords import is_password
from gateway.auth.users import NAME_MAX, NO_USERS, Users, load_users
from mappings.language.yaml_lines import Problem
from native_backend.clock import Clock

log = logging.getLogger("realmgate.console")
_LOOK_S = 1.0  # between two looks at the file of users


class Busy(Exception):
    """A login whose turn does not come soon enough: too many of its address wait, or have failed."""


@dataclass(slots=True)
class _Session:
    user: str
    ends_s: float


@dataclass(slots=True)
class _File:
    path: Path
    users: Users = NO_USERS
    known: tuple[int, ...] | None = None  # what tells that it has changed; empty: it was not there
    looked_s: float = field(default=float("-inf"))


class Sessions:
    """Of one console. `groups`: one of them is needed; none: every user may look."""

    def __init__(self, path: Path, groups: tuple[str, ...], clock: Clock) -> None:
        self._file = _File(path)
        self._groups = frozenset(groups)
        self._clock = clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._throttle = LoginThrottle(LOGIN_FAILURES)
        self._queue = LoginQueue(self._throttle, clock, later, LOGINS_WAITING)
        self.problem = ""
        self._read()

    def user(self, token: str) -> str | None:
        """Whose session that is; None: there is none, or no longer."""
        session = self._sessions.get(token)
        if session is None:
            return None
        if session.ends_s < self._clock.monotonic_s() or not self._may_look(session.user):
            del self._sessions[token]
            return None
        return session.user

    def _may_look(self, name: str) -> bool:
        self._read()
        users = self._file.users
        return name in users and (not self._groups or bool(self._groups & users.subject(name).groups))

    async def log_in(self, name: str, password: str, address: str) -> str | None:
        """The word of a new session; None: refused. Which part was wrong is not said. Raises Busy."""
        if len(name.encode()) > NAME_MAX:
            return None
        heard = asyncio.get_running_loop().create_future()
        attempt = Attempt(network(address), name, lambda: _settle(heard, True), lambda: _settle(heard, False))
        if not self._queue.enter(attempt):
            raise self._busy(name, address)
        try:
            if not await heard:
                raise self._busy(name, address)
            self._read()
            is_right = await asyncio.to_thread(is_password, self._file.users, name, password)
            if not is_right or not self._may_look(name):
                self._throttle.failed(address, name, self._clock.monotonic_s())
                log.warning("login of %a from %s failed", name[:80], address)
                return None
            self._throttle.succeeded(address, name)
        finally:
            self._queue.leave(attempt)
        log.info("%a has logged in from %s", name, address)
        return self.begin(name)

    def _busy(self, name: str, address: str) -> Busy:
        log.warning("login of %a from %s refused unheard: too many of its address wait, or failed", name[:80], address)
        return Busy()

    def begin(self, name: str) -> str:
        token = secrets.token_urlsafe(32)
        self._sessions[token] = _Session(name, self._clock.monotonic_s() + SESSION_S)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return token

    def log_out(self, token: str) -> None:
        self._sessions.pop(token, None)

    def _read(self) -> None:
        """The file as it is now, looked at once a second at most. One that is wrong changes nothing, and is named."""
        file, now_s = self._file, self._clock.monotonic_s()
        if now_s - file.looked_s < _LOOK_S:
            return
        file.looked_s = now_s
        known = _state_of(file.path)
        if known == file.known:
            return
        file.known = known
        problems: list[Problem] = []
        users = load_users(file.path, problems)
        self.problem = str(problems[0]) if problems else ""
        if not problems:
            file.users = users
        elif file.users:
            log.warning("the previous users stay: %s", self.problem)


def later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


def _settle(turn: asyncio.Future[bool], heard: bool) -> None:
    """The one who waited may have gone."""
    if not turn.done():
        turn.set_result(heard)


def _state_of(path: Path) -> tuple[int, ...]:
    """Nothing of a file that is not there. The time of the last change of its state, so other rights are a change."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

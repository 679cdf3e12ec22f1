"""The roster: the file of users while serving. When it changes it is read anew, on another thread, and what it says is
in force from then on: for who comes, and for who is there.

Who is in other groups now may lose or gain links; whoever is no more in the file loses the connection. A password that
was changed counts for the next login. A file with problems changes nothing; they are logged once.
May import: `gateway`, `mappings`, asyncio.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor, Future
from pathlib import Path

from gateway.consuming import ConsumingLink
from gateway.doorkeeper import Doorkeeper
from gateway.gateway import Gateway
from gateway.users import Users, load_users
from mappings.yaml_lines import Problem
from native_backend.access import ANONYMOUS

log = logging.getLogger("realmgate.security")

Signature = tuple[int, int, int]
Read = tuple[Users, list[Problem]]


class Roster:
    """One gateway's. `look` is called about once a second."""

    def __init__(self, gateway: Gateway, keeper: Doorkeeper, workers: Executor) -> None:
        self._gateway = gateway
        self._keeper = keeper
        self._workers = workers
        self._file = gateway.settings.security.users_file
        self._seen: Signature | None = None  # read once more: it may have changed since the start
        self._reading = False

    def look(self) -> None:
        signature = signature_of(self._file)
        if self._file is None or self._reading or signature in (None, self._seen):
            return
        self._reading, self._seen = True, signature
        reading = asyncio.get_running_loop().run_in_executor(self._workers, read, self._file)
        reading.add_done_callback(self._have_read)

    def _have_read(self, reading: asyncio.Future[Read] | Future[Read]) -> None:
        self._reading = False
        if reading.cancelled():
            return
        users, problems = reading.result()
        if problems:
            said = "\n  ".join(map(str, problems))
            log.error("this file of users is not used, the one read before stays in force:\n  %s", said)
            return
        self._keeper.users = users
        self._use(users)
        log.info("the file of users was read: %d users", len(users))

    def _use(self, users: Users) -> None:
        for connection in list(self._gateway.connections):
            name = connection.subject.user
            if connection.subject == ANONYMOUS:
                continue
            if name not in users:
                connection.close("amqp:unauthorized-access", "the user is no more")
                continue
            connection.subject = users.subject(name)
            for link in connection.engine.links():
                if isinstance(link.owner, ConsumingLink):
                    link.owner.subscription.subject = connection.subject
        self._gateway.realm.access.changed()


def read(file: Path) -> Read:
    problems: list[Problem] = []
    return load_users(file, problems), problems


def signature_of(file: Path | None) -> Signature | None:
    """What tells that a file has changed; None while there is none."""
    try:
        status = file.stat() if file is not None else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status is not None else None

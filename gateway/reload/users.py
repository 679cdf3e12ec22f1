"""The users file while serving. It is read again on another thread (`gateway/reload/watched_files.py`).
Its content then holds for new peers and for connected ones.

A user in other groups may lose links or get new rights. A user who is removed from the file loses the connection. A
changed password counts for the next login.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path

from gateway.auth.authenticator import Authenticator
from gateway.auth.users import Users, load_users
from gateway.links.consuming import ConsumingLink
from gateway.reload.watched_files import WatchedFiles
from gateway.session.gateway import Gateway
from mappings.language.yaml_lines import Problem
from native_backend.nodes.grants import ANONYMOUS

log = logging.getLogger("realmgate.security")

Read = tuple[Users, list[Problem]]


class UserFile(WatchedFiles):
    """One gateway's."""

    kind = "users"
    kept = "this users file is not used; the previous one stays active"

    def __init__(self, gateway: Gateway, authenticator: Authenticator, workers: Executor, file: Path) -> None:
        super().__init__(log, gateway.clock, None)  # read once more: it may have changed since the start
        self._gateway = gateway
        self._authenticator = authenticator
        self._workers = workers
        self._file = file

    def files(self) -> Iterable[Path]:
        return (self._file,)

    async def read(self) -> list[str]:
        users, problems = await asyncio.get_running_loop().run_in_executor(self._workers, read, self._file)
        if problems:
            return [*map(str, problems)]
        weakness = self._gateway.users.weakness
        if not users.is_as(self._gateway.users):  # else a login that is under way would be refused for nothing
            self._use(users)
        log.info("the users file was read: %d users", len(users))
        if users.weakness not in ("", weakness):
            log.warning("%s", users.weakness)
        return []

    def _use(self, users: Users) -> None:
        self._authenticator.users = self._gateway.users = users
        for connection in list(self._gateway.connections):
            name = connection.subject.user
            if connection.subject == ANONYMOUS:
                continue
            if name not in users:
                connection.close("amqp:unauthorized-access", "the user was removed from the users file")
                continue
            connection.subject = users.subject(name)
            for link in connection.engine.links():
                if isinstance(link.owner, ConsumingLink):
                    link.owner.subscription.subject = connection.subject
        self._gateway.realm.authorizer.changed()


def read(file: Path) -> Read:
    problems: list[Problem] = []
    return load_users(file, problems), problems

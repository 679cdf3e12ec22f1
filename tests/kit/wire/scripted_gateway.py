"""A gateway with its real server, on a real socket, in front of a scripted realm: what it answers the peer, and what
it asked of the realm, can both be seen.

    with ScriptedGateway(tables) as gateway, Peer(gateway.port) as peer:
        ...
        gateway.realm.calls, gateway.rules()

The server runs on a thread of its own; a script is set before the frame that it is about is sent.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from gateway.config.settings import Listen, MappingSettings
from gateway.reload.tables import TableReload
from gateway.server.server import Server
from gateway.session.gateway import Gateway
from mappings import TableSet
from native_backend.clock import SystemClock
from tests.kit.patience import HANG_S
from tests.kit.wire.conversation import settings_of
from tests.kit.wire.scripted_realm import ScriptedRealm

DEADLINE_S = HANG_S


class ScriptedGateway:
    """See the module's docstring."""

    def __init__(
        self, tables: TableSet, realm: ScriptedRealm | None = None, directory: Path | None = None, **limits: int
    ) -> None:
        """`directory`: where a reload reads tables."""
        self._limits = limits
        self.realm = realm or ScriptedRealm()
        self.tables = tables
        self.directory = directory
        self.queue, self.channel = "q", "c"  # nodes for a scenario
        self.port = 0
        self.gateway: Gateway
        self.server: Server
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="gateway")

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        settings = settings_of(self.tables, (Listen("127.0.0.1", 0),), self._limits)
        settings = replace(settings, mappings=MappingSettings(self.tables.profile, self.directory))
        self.gateway = Gateway(settings, self.realm, self.tables, SystemClock())  # type: ignore[arg-type]
        self.server = Server(self.gateway, TableReload(self.gateway))
        [listener] = await self.server.open()
        self.port = listener.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        await self.server.reload.close()
        listener.close()
        for port in list(self.server.sockets.values()):
            port.abort()
        await asyncio.sleep(0)
        self.close_realm()

    def close_realm(self) -> None:
        """While the loop runs: a thread of the realm that would wake a closed one dies."""

    def do(self, action: Callable[[], Any]) -> Any:
        """Run something between two turns."""
        done: list[Any] = []
        finished = threading.Event()

        def run() -> None:
            done.append(action())
            finished.set()

        self._loop.call_soon_threadsafe(run)
        assert finished.wait(DEADLINE_S)
        return done[0]

    def until(self, reached: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
        """Wait for something that the realm shows."""
        end = time.monotonic() + deadline_s
        while not self.do(reached):
            assert time.monotonic() < end, "not reached"
            time.sleep(0.002)

    def stored(self, name: str) -> list[bytes]:
        """What is kept of a node."""
        return list(self.realm.store(name).values.values())

    def fail_retiring(self) -> None:
        """The next discharge of acknowledgements alone is not honoured."""
        self.realm.answers["commit"] = "unexpected"

    def fail_attach(self, answer: str, peer: Any) -> Any:
        """The next subscription of the channel is answered so; the filters of its source."""
        self.realm.answers["subscribe"] = answer

    def lose(self, answer: str) -> None:
        """Every subscription ends for that."""
        self.do(lambda: self.realm.lose_subscriptions(answer))

    def delete_durables(self) -> None:
        """Those of the channel, by an operator."""
        self.lose("not-found")

    def rules(self) -> list[str]:
        """`TABLE.RULE` of everything that was decided about deliveries, from the evidence."""
        self.do(lambda: self.gateway.outcomes.flush(closed=True))  # a record is not due at the end of each turn
        records = self.do(lambda: list(self.realm.evidence))
        names: dict[str, None] = {}
        for record in records:
            for group in orjson.loads(record).get("groups", ()):
                for side in ("", "answer_"):
                    if group[f"{side}rule"]:
                        names[f"{group[f'{side}table']}.{group[f'{side}rule']}"] = None
        return list(names)

    def __enter__(self) -> ScriptedGateway:
        self._thread.start()
        assert self._ready.wait(DEADLINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(DEADLINE_S)
